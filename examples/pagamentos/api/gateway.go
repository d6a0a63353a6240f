package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// gatewayTimeout bounds a call of the gateway: people wait for it.
const gatewayTimeout = 10 * time.Second

// maxReply bounds what is read of an answer, in bytes.
const maxReply = 1 << 20

// Charge is what the gateway says of a payment.
type Charge struct {
	ID       string `json:"id"`
	Approved bool   `json:"aprovada"`
}

// Gateway is a client of the card gateway.
type Gateway struct {
	url  string
	http *http.Client
}

// NewGateway returns a client of the gateway at an address such as
// http://127.0.0.1:8090.
func NewGateway(address string) *Gateway {
	// net/http sends a request again by itself when a connection breaks and the
	// request has a key, or only reads. It must not be this client that decides to
	// charge twice: each call has a connection of its own, which is never one that
	// the gateway has just closed.
	transport := &http.Transport{DisableKeepAlives: true}
	return &Gateway{url: address, http: &http.Client{Transport: transport, Timeout: gatewayTimeout}}
}

// Charge charges a card. An error says nothing of whether it was charged. A key
// that is empty is not sent.
func (g *Gateway) Charge(ctx context.Context, key string, p Payment) (Charge, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return Charge{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+"/cobrancas", bytes.NewReader(text))
	if err != nil {
		return Charge{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	var answered struct {
		ID string `json:"id"`
	}
	status, err := g.ask(req, &answered)
	switch {
	case err != nil:
		return Charge{}, err
	case status == http.StatusCreated:
		return Charge{ID: answered.ID, Approved: true}, nil
	case status == http.StatusPaymentRequired:
		return Charge{ID: answered.ID}, nil
	}
	return Charge{}, fmt.Errorf("the gateway answered %d", status)
}

// Known is what the gateway knows of a key.
type Known struct {
	Charges []struct {
		ID string `json:"id"`
	} `json:"cobrancas"`
	// UnderWay is how many requests with the key may still be charged.
	UnderWay int `json:"em_curso"`
}

// Known asks the gateway what it knows of a key.
func (g *Gateway) Known(ctx context.Context, key string) (k Known, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+"/cobrancas?chave="+url.QueryEscape(key), nil)
	if err != nil {
		return k, err
	}
	status, err := g.ask(req, &k)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("the gateway answered %d", status)
	}
	return k, err
}

func (g *Gateway) ask(req *http.Request, into any) (status int, err error) {
	res, err := g.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	return res.StatusCode, json.NewDecoder(io.LimitReader(res.Body, maxReply)).Decode(into)
}
