package expresstest

import (
	"net/http"
	"strings"
	"testing"
)

// The rows about what the application answers.

// TestE10_Helmet: a replay has the headers of the first answer.
func TestE10_Helmet(t *testing.T) {
	a := newApp(t, []string{"helmet"}, everyone...)
	first, again := a.post("/pagamentos", "k", nil), a.post("/pagamentos", "k", nil)
	wantReplay(t, first, again)
	for _, name := range []string{"Content-Security-Policy", "Strict-Transport-Security", "X-Content-Type-Options"} {
		if first.header.Get(name) == "" {
			t.Errorf("helmet sets no %s", name)
		}
		wantHeader(t, again, name, first.header.Get(name))
	}
	// umavez's own refusals come from in front of it.
	refused := a.post("/pagamentos?other", "k", nil)
	wantHeader(t, refused, "Strict-Transport-Security", "")
	wantHeader(t, refused, "Cache-Control", "no-store")
}

// TestE11_ErrorHandlers: a 500 does not say that nothing happened.
func TestE11_ErrorHandlers(t *testing.T) {
	a := newApp(t, nil, everyone...)
	t.Run("after the charge", func(t *testing.T) {
		first := a.post("/falha-depois", "k", nil)
		again := a.post("/falha-depois", "k", nil)
		if first.status != http.StatusInternalServerError || first.header.Get("Idempotency-Status") != "unknown" {
			t.Errorf("first %+v, want 500 and unknown", first)
		}
		if again.status != http.StatusInternalServerError || again.body != first.body || !again.replayed() || again.header.Get("Idempotency-Status") != "unknown" {
			t.Errorf("again %+v, want the same, replayed", again)
		}
		a.wantCharges(1)
	})
	t.Run("before it, and says so", func(t *testing.T) {
		first := a.post("/falha-antes", "k2", nil)
		if first.status != http.StatusInternalServerError {
			t.Errorf("first %+v, want 500", first)
		}
		wantHeader(t, first, "Idempotency-Outcome", "") // for umavez alone
		wantHeader(t, first, "Idempotency-Status", "")
		wantReplay(t, a.post("/falha-antes", "k2", nil), a.post("/falha-antes", "k2", nil))
		a.wantCharges(2)
	})
	t.Run("a rate limit", func(t *testing.T) {
		if first := a.post("/limite", "k3", nil); first.status != http.StatusTooManyRequests || first.header.Get("Retry-After") != "1" {
			t.Errorf("first %+v, want 429 and when to come again", first)
		}
		wantReplay(t, a.post("/limite", "k3", nil), a.post("/limite", "k3", nil))
		a.wantCharges(3)
	})
}

// TestE12_Streams: an answer in pieces is kept as any; events are not.
func TestE12_Streams(t *testing.T) {
	a := newApp(t, nil, everyone...)
	wantReplay(t, a.post("/lotes", "k", nil), a.post("/lotes", "k", nil))
	events := a.post("/eventos", "k2", nil)
	if events.status != http.StatusOK || !strings.HasSuffix(events.body, "data: fim\n\n") {
		t.Errorf("events came as %+v", events)
	}
	again := a.post("/eventos", "k2", nil)
	if again.status != http.StatusConflict || again.code() != "replay-unavailable" || !strings.Contains(again.body, `"status":200`) {
		t.Errorf("again %+v, want 409 replay-unavailable with the first one's status", again)
	}
	a.wantCharges(2)
}
