package expresstest

import (
	"net/http"
	"strings"
	"testing"
)

// TestServer_Refuses: what is no payment is refused in Portuguese, charges
// nothing, and is the answer to every further attempt with the key.
func TestServer_Refuses(t *testing.T) {
	w := newWorld(t, true)
	a := &app{t: t, front: w.front.url, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}}
	const tooLong = `"cartao": "4111111111111111` + "4111111111111111" + `"`
	for key, c := range map[string]struct{ kind, body, erro string }{
		"no amount":      {"application/json", `{"cartao": "4111111111111111"}`, "valor deve ser um número maior que zero"},
		"a text":         {"application/json", `{"valor": "49.90", "cartao": "4111111111111111"}`, "valor deve ser um número maior que zero"},
		"below zero":     {"application/json", `{"valor": -1, "cartao": "4111111111111111"}`, "valor deve ser um número maior que zero"},
		"endless":        {"application/json", `{"valor": 1e999, "cartao": "4111111111111111"}`, "valor deve ser um número maior que zero"},
		"no card":        {"application/json", `{"valor": 49.90}`, "cartao deve ter de 12 a 19 dígitos"},
		"a long card":    {"application/json", `{"valor": 49.90, ` + tooLong + `}`, "cartao deve ter de 12 a 19 dígitos"},
		"no JSON":        {"application/json", `{"valor": 49.90`, "o corpo não é JSON válido"},
		"another type":   {"text/plain", `{"valor": 49.90, "cartao": "4111111111111111"}`, "valor deve ser um número maior que zero"},
		"no body at all": {"application/json", "", "valor deve ser um número maior que zero"},
	} {
		h := header{"Idempotency-Key": `"` + key + `"`, "Content-Type": c.kind}
		first, again := a.send("POST", "/pagamentos", h, c.body), a.send("POST", "/pagamentos", h, c.body)
		if first.status != http.StatusBadRequest || !strings.Contains(first.body, `{"erro":"`+c.erro+`"}`) {
			t.Errorf("%s: %+v, want 400 and %q", key, first, c.erro)
		}
		if !again.replayed() || again.body != first.body || again.status != first.status {
			t.Errorf("%s: again %+v, want the replay of %+v", key, again, first)
		}
	}
	if charges := w.charges(); len(charges) != 0 {
		t.Errorf("charged %q", charges)
	}
}
