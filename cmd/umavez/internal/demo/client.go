package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// clientTimeout is how long a client waits for one answer: longer than a second
// click waits for the first.
const clientTimeout = 15 * time.Second

// retryEvery is the client's pause. Real ones wait longer, and longer each time.
const retryEvery = 50 * time.Millisecond

// card is the article's.
const card = "4111111111111111"

// reply is what came of sending a payment once.
type reply struct {
	Status   int    `json:"status"` // 0: no answer
	ID       string `json:"id,omitempty"`
	Said     string `json:"said,omitempty"`
	Code     string `json:"code,omitempty"` // of a refusal
	Replayed bool   `json:"replayed,omitempty"`
}

// final reports whether the client has what it wants to know.
func (r reply) final() bool {
	return r.Status == http.StatusCreated || r.Status == http.StatusPaymentRequired
}

// unknown: nobody knows what became of it, and sending it again does not help.
func (r reply) unknown() bool { return r.Code == "outcome-unknown" }

// send sends a payment once. No answer is no error: it is what this is about.
func (w *world) send(ctx context.Context, s Side, key string, centavos int64) (reply, error) {
	body := fmt.Sprintf(`{"valor": %d.%02d, "cartao": %q}`, centavos/100, centavos%100, card)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url(s)+"/pagamentos", strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	res, err := w.http.Do(req)
	if err != nil {
		return reply{}, context.Cause(ctx)
	}
	defer res.Body.Close()
	var text struct {
		ID     string `json:"id"`
		Status any    `json:"status"`
		Code   string `json:"code"`
	}
	if err := json.NewDecoder(res.Body).Decode(&text); err != nil {
		return reply{}, context.Cause(ctx) // it broke off
	}
	said, _ := text.Status.(string) // a problem document has a number there
	return reply{
		Status: res.StatusCode, ID: text.ID, Said: said, Code: text.Code,
		Replayed: res.Header.Get("Idempotent-Replayed") == "true",
	}, nil
}

// pay sends a payment with the same key until an answer comes, or until nobody
// can tell: the same for both sides.
func (w *world) pay(ctx context.Context, s Side, key string, centavos int64) (reply, error) {
	for {
		r, err := w.send(ctx, s, key, centavos)
		if err != nil || r.final() || r.unknown() {
			return r, err
		}
		if err := pause(ctx, retryEvery); err != nil {
			return r, err
		}
	}
}
