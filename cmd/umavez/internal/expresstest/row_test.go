package expresstest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A test here is a row of the table in docs/express.md, and has its number.

// TestE1_TrailingSlash: both of Express's settings charge once.
func TestE1_TrailingSlash(t *testing.T) {
	t.Run("off", func(t *testing.T) {
		a := newApp(t, nil, everyone...)
		wantReplay(t, a.post("/pagamentos/", "k", nil), a.post("/pagamentos/", "k", nil))
		// Another path is another request.
		if r := a.post("/pagamentos", "k", nil); r.code() != "key-reused" {
			t.Errorf("the other spelling: %+v", r)
		}
		a.wantCharges(1)
	})
	t.Run("on", func(t *testing.T) {
		a := newApp(t, []string{"strict"}, everyone...)
		if r := a.post("/pagamentos/", "k", nil); r.status != http.StatusNotFound {
			t.Errorf("got %+v, want Express's 404", r)
		}
		wantReplay(t, a.post("/pagamentos", "k2", nil), a.post("/pagamentos", "k2", nil))
		a.wantCharges(1)
	})
}

// TestE2_Case: Express does not tell case apart, so neither may umavez.
func TestE2_Case(t *testing.T) {
	ignoring := append([]string{"--ignore-case"}, everyone...)
	for _, c := range []struct {
		name     string
		switches []string
		args     []string
		charges  int
	}{
		{"without ignore-case it is unprotected", nil, everyone, 2},
		{"with it", nil, ignoring, 1},
		{"case sensitive routing", []string{"case-sensitive"}, everyone, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newApp(t, c.switches, c.args...)
			a.post("/Pagamentos", "k", nil)
			a.post("/Pagamentos", "k", nil)
			a.wantCharges(c.charges)
		})
	}
}

// TestE3_CORS: who answers a preflight, and what a page may read.
func TestE3_CORS(t *testing.T) {
	const origin = "https://loja.example"
	fromPage := header{"Origin": origin}
	preflight := header{
		"Origin": origin, "Access-Control-Request-Method": "POST",
		"Access-Control-Request-Headers": "content-type,idempotency-key",
	}
	const allow, expose = "Access-Control-Allow-Origin", "Access-Control-Expose-Headers"
	t.Run("cors() alone", func(t *testing.T) {
		a := newApp(t, []string{"cors"}, everyone...)
		asked := a.send("OPTIONS", "/pagamentos", preflight, "")
		wantHeader(t, asked, allow, "*")
		wantHeader(t, asked, "Access-Control-Allow-Headers", "content-type,idempotency-key")
		first, again := a.post("/pagamentos", "k", fromPage), a.post("/pagamentos", "k", fromPage)
		wantReplay(t, first, again)
		wantHeader(t, again, allow, "*")
		wantHeader(t, again, expose, "") // the page cannot see that it is a replay
		refused := a.post("/pagamentos?other", "k", fromPage)
		wantHeader(t, refused, allow, "") // nor read umavez's refusal at all
	})
	t.Run("exposedHeaders, for what the application says", func(t *testing.T) {
		a := newApp(t, []string{"cors-exposed"}, everyone...)
		wantHeader(t, a.post("/pagamentos", "k", fromPage), expose,
			"Idempotency-Key,Idempotent-Replayed,Idempotency-Status,Retry-After,Location")
	})
	t.Run("umavez's cors, for everything", func(t *testing.T) {
		for _, switches := range [][]string{nil, {"cors"}} {
			a := newApp(t, switches, append([]string{"--cors", origin}, everyone...)...)
			wantHeader(t, a.send("OPTIONS", "/pagamentos", preflight, ""), allow, origin)
			first, again := a.post("/pagamentos", "k", fromPage), a.post("/pagamentos", "k", fromPage)
			wantReplay(t, first, again)
			refused := a.post("/pagamentos?other", "k", fromPage)
			wantHeader(t, refused, allow, origin)
			for _, r := range []reply{first, again, refused} {
				if r.header.Get(allow) == "" || !strings.Contains(r.header.Get(expose), "Idempotent-Replayed") {
					t.Errorf("%v: a page cannot read %+v", switches, r)
				}
			}
		}
	})
}

// TestE4_Compression: answers are kept as they are, and come so to everyone.
func TestE4_Compression(t *testing.T) {
	a := newApp(t, []string{"compression"}, everyone...)
	packed := header{"Accept-Encoding": "gzip"}
	first, again := a.post("/pagamentos", "k", packed), a.post("/pagamentos", "k", nil)
	wantReplay(t, first, again)
	wantHeader(t, first, "Content-Encoding", "")
	// Other requests are compressed as ever.
	if r := a.send("GET", "/cobrancas", packed, ""); r.header.Get("Content-Encoding") != "gzip" {
		t.Errorf("a request that is not protected came as %+v", r)
	}
}

// TestE5_Uploads: the cap is 1 MiB, and a retry may draw another boundary.
func TestE5_Uploads(t *testing.T) {
	large := strings.Repeat("comprovante ", 1<<17) // 1.5 MiB
	upload := func(a *app, boundary string) reply {
		body := fmt.Sprintf("--%[1]s\r\nContent-Disposition: form-data; name=\"f\"; filename=\"c.txt\"\r\n\r\n%[2]s\r\n--%[1]s--\r\n", boundary, large)
		return a.send("POST", "/comprovantes", header{
			"Idempotency-Key": "k", "Content-Type": "multipart/form-data; boundary=" + boundary,
		}, body)
	}
	t.Run("over max-body", func(t *testing.T) {
		a := newApp(t, nil, everyone...)
		if r := upload(a, "b1"); r.status != http.StatusRequestEntityTooLarge || r.code() != "request-too-large" {
			t.Errorf("got %+v", r)
		}
		a.wantCharges(0)
	})
	t.Run("a larger max-body", func(t *testing.T) {
		a := newApp(t, nil, append([]string{config(t, "max-body: 4194304\n")}, everyone...)...)
		wantReplay(t, upload(a, "b1"), upload(a, "b2"))
		a.wantCharges(1)
	})
	t.Run("over the limit of express.json", func(t *testing.T) {
		a := newApp(t, nil, everyone...)
		h := header{"Idempotency-Key": "k", "Content-Type": "application/json"}
		body := `{"texto": "` + large[:200<<10] + `"}`
		for range 2 { // it is by definition before the payment, and so not kept
			if r := a.send("POST", "/pagamentos", h, body); r.status != http.StatusRequestEntityTooLarge || r.replayed() || r.code() != "" {
				t.Errorf("got %+v, want Express's 413", r)
			}
		}
		wantReplay(t, a.post("/pagamentos", "k", nil), a.post("/pagamentos", "k", nil))
	})
}

// TestE6_KeepAlive: a connection that Node may be closing is not used for a
// payment, so none becomes unknown.
func TestE6_KeepAlive(t *testing.T) {
	const payments = 20
	for _, timeout := range []string{"1", "1000"} { // ms; Node announces 0 s and 1 s
		a := newApp(t, []string{"keep-alive=" + timeout}, everyone...)
		for i := range payments {
			if r := a.post("/pagamentos", fmt.Sprint(i), nil); r.status != http.StatusCreated {
				t.Errorf("keep-alive %s ms, payment %d: %+v", timeout, i, r)
			}
		}
		if c := a.counts(); c.Charges != payments || c.Connections != payments+1 {
			t.Errorf("keep-alive %s ms: %+v, want each payment on a connection of its own, and one for this question", timeout, c)
		}
	}
}

// TestE6_Warm: with Node's own five seconds, connections are used again. Only a
// machine that takes 100 ms between any two of these payments would use none.
func TestE6_Warm(t *testing.T) {
	const payments = 40
	a := newApp(t, nil, everyone...)
	for i := range payments {
		if r := a.post("/pagamentos", fmt.Sprint(i), nil); r.status != http.StatusCreated {
			t.Errorf("payment %d: %+v", i, r)
		}
	}
	if c := a.counts(); c.Charges != payments || c.Connections > payments {
		t.Errorf("%+v for %d payments, want some on a warm connection", c, payments)
	}
}

// TestE7_TrustProxy: whose address and host the application sees.
func TestE7_TrustProxy(t *testing.T) {
	forged := header{"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Host": "outra.example"}
	trusting := append([]string{"--trusted-proxy", "127.0.0.1/32"}, everyone...)
	for _, c := range []struct {
		name     string
		switches []string
		args     []string
		ip, host string
	}{
		{"not set", nil, everyone, "127.0.0.1", "127.0.0.1"},
		{"set: what a client says of itself counts for nothing", []string{"trust-proxy"}, everyone, "127.0.0.1", "127.0.0.1"},
		{"set, behind a proxy that umavez trusts", []string{"trust-proxy"}, trusting, "203.0.113.7", "outra.example"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newApp(t, c.switches, c.args...).post("/pagamentos", "k", forged)
			if want := fmt.Sprintf(`"ip":%q,"host":%q`, c.ip, c.host); !strings.Contains(r.body, want) {
				t.Errorf("the application saw %s, want %s", r.body, want)
			}
		})
	}
}
