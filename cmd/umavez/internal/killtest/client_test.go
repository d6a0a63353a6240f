package killtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// place is where the sidecar is now. It moves with every restart.
type place struct {
	mu    sync.Mutex
	url   string
	moved chan struct{} // closed at the next move
}

func newPlace() *place { return &place{moved: make(chan struct{})} }

func (p *place) move(url string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.url = url
	close(p.moved)
	p.moved = make(chan struct{})
}

func (p *place) now() (url string, moved <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.url, p.moved
}

// answer is what a client received in full.
type answer struct {
	Status   int
	Header   string // sorted, without what is about the moment
	Body     string
	Replayed bool
	Code     string // of a problem document
}

// same reports whether two answers are the same to a client, but for the marker.
func (a answer) same(b answer) bool {
	a.Replayed, b.Replayed = false, false
	return a == b
}

// outcome is what a client knows of a key in the end.
type outcome uint8

const (
	pending outcome = iota // still running somewhere, or its process died
	done
	unknown
)

// client makes attempts, and remembers every answer that it received in full.
type client struct {
	http *http.Client
	at   *place

	unavailable atomic.Int64 // answers that say so

	mu       sync.Mutex
	received map[string][]answer
	cut      map[string]bool // keys with an attempt that a death broke off
	problems []string
}

func newClient(at *place) *client {
	return &client{
		// No attempt takes longer, but for a fault.
		http:     &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}, Timeout: 30 * time.Second},
		at:       at,
		received: make(map[string][]answer),
		cut:      make(map[string]bool),
	}
}

// attempt makes one attempt at url.
func (c *client) attempt(url, key string) (answer, error) {
	req, err := http.NewRequest(http.MethodPost, url+"/pagamentos", bytes.NewReader([]byte(`{"key":"`+key+`"}`)))
	if err != nil {
		return answer{}, err
	}
	req.GetBody = nil // an attempt is one request
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	res, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{
		Status: res.StatusCode, Body: string(body),
		Replayed: res.Header.Get("Idempotent-Replayed") == "true",
	}
	var problem struct{ Code string }
	if res.Header.Get("Content-Type") == "application/problem+json" && json.Unmarshal(body, &problem) == nil {
		a.Code = problem.Code
	}
	res.Header.Del("Date")
	res.Header.Del("Idempotent-Replayed")
	var header strings.Builder
	if err := res.Header.Write(&header); err != nil {
		return answer{}, err
	}
	a.Header = header.String()
	return a, nil
}

// settle tries a key until its fate is known or somebody holds it, over as many
// restarts as it takes, until stop.
func (c *client) settle(stop <-chan struct{}, key string) outcome {
	for {
		url, moved := c.at.now()
		a, err := c.attempt(url, key)
		if err != nil {
			// The process died under the attempt: another one will come.
			c.broke(key)
			select {
			case <-moved:
				continue
			case <-stop:
				return pending
			}
		}
		switch {
		case a.Status == http.StatusCreated:
			c.keep(key, a)
			return done
		case a.Status == http.StatusTooManyRequests && a.Code == "":
			continue // the upstream refused, and nothing happened
		case a.Code == "store-unavailable":
			// A busy disk: nothing was run, and the answer says to come again.
			// It came after the two seconds that a claim may take.
			c.unavailable.Add(1)
			continue
		case a.Code == "in-progress":
			return pending
		case a.Code == "outcome-unknown":
			return unknown
		default:
			c.complain("%s: unexpected answer %+v", key, a)
			return pending
		}
	}
}

func (c *client) keep(key string, a answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received[key] = append(c.received[key], a)
}

func (c *client) broke(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut[key] = true
}

func (c *client) complain(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}
