package api

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/examples/pagamentos/gateway"
	"github.com/umavez/umavez/store/memstore"
)

// TestPays: the article's answer, from both.
func TestPays(t *testing.T) {
	for name, s := range map[string]*shop{
		"unprotected": newShop(t, true).unprotected(),
		"protected":   newShop(t, true).protected(umavez.Options{}, Options{}),
	} {
		r := s.pay("pedido-42", order)
		charged := s.mustHave(1)[0]
		if r.status != 201 || r.id != charged.ID || r.said != "aprovado" || r.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %+v", name, r)
		}
		if charged.Centavos != 4990 || charged.Card != "1111" {
			t.Errorf("%s: charged %+v", name, charged)
		}
	}
}

// TestDeclined: nothing is charged, and protected it is said again without asking.
func TestDeclined(t *testing.T) {
	for name, s := range map[string]*shop{
		"unprotected": newShop(t, true, gateway.FaultDecline).unprotected(),
		"protected":   newShop(t, true, gateway.FaultDecline).protected(umavez.Options{}, Options{}),
	} {
		if r := s.pay("k", order); r.status != 402 || r.said != "recusado" {
			t.Errorf("%s: %+v", name, r)
		}
		s.mustHave(0)
		if r := s.pay("k", order); name == "protected" && (r.status != 402 || r.said != "recusado") {
			t.Errorf("%s: again: %+v", name, r)
		}
	}
}

// TestRefuses: what is wrong is said in Portuguese, by both, and nothing is charged.
func TestRefuses(t *testing.T) {
	both := []*shop{newShop(t, true).unprotected(), newShop(t, true).protected(umavez.Options{}, Options{})}
	for n, c := range []struct {
		body   string
		status int
		says   string
	}{
		{"", 400, "o corpo não é JSON"},
		{"[]", 400, "o corpo não é JSON"},
		{`{"valor": "x", "cartao": "4111111111111111"}`, 400, "o corpo não é JSON"},
		{`{"valor": true, "cartao": "4111111111111111"}`, 400, "o campo valor não é do tipo certo"},
		{`{"valor": 1, "cartao": 4111111111111111}`, 400, "o campo cartao não é do tipo certo"},
		{order + order, 400, "vem mais alguma coisa"},
		{`{"cartao": "` + strings.Repeat("1", maxBody) + `"}`, 400, "o corpo tem mais de 4096 bytes"},
		{`{"cartao": "4111111111111111"}`, 422, `"campo":"valor","mensagem":"é obrigatório"`},
		{`{"valor": 0, "cartao": "4111111111111111"}`, 422, `"campo":"valor","mensagem":"deve ser positivo"`},
		{`{"valor": -1, "cartao": "4111111111111111"}`, 422, `"campo":"valor","mensagem":"deve ser positivo"`},
		{`{"valor": 1.999, "cartao": "4111111111111111"}`, 422, "no máximo duas casas decimais"},
		{`{"valor": 1000000.01, "cartao": "4111111111111111"}`, 422, "deve ser no máximo 1000000.00"},
		{`{"valor": 1}`, 422, `"campo":"cartao","mensagem":"deve ter de 13 a 19 dígitos`},
		{`{"valor": 1, "cartao": "411111111111"}`, 422, `"campo":"cartao"`},
		{`{"valor": 1, "cartao": "41111111111111111111"}`, 422, `"campo":"cartao"`},
		{`{"valor": 1, "cartao": "4111 1111 1111 1111"}`, 422, `"campo":"cartao"`},
	} {
		for i, s := range both {
			r := s.pay(fmt.Sprint("k", n), c.body)
			if r.status != c.status || !strings.Contains(r.body, c.says) || r.header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%d: %.50q: answered %d %s", i, c.body, r.status, r.body)
			}
		}
	}
	for _, s := range both {
		s.mustHave(0)
	}
	if r := both[1].pay("", order); r.status != 400 || r.code != "missing-key" {
		t.Errorf("without a key: %+v", r)
	}
}

// TestCentavos: amounts are read as they are written, to the centavo.
func TestCentavos(t *testing.T) {
	for number, want := range map[string]int64{
		"49.90": 4990, "49.9": 4990, "50": 5000, "0.01": 1, "0.10": 10, "1.000": 100, "1000000": 100_000_000, "8.21": 821, "1.10": 110,
	} {
		if got, wrong := centavosOf(number); got != want || wrong != "" {
			t.Errorf("%s is %d centavos, %q; want %d", number, got, wrong, want)
		}
	}
	for _, number := range []string{"", "0", "0.00", "-0", "-0.5", "-49.90", "0.001", "1e2", "1E400", "99999999999999999999", "1000000.01"} {
		if got, wrong := centavosOf(number); wrong == "" {
			t.Errorf("%s was taken for %d centavos", number, got)
		}
	}
}

// TestUnprotectedChargesAgain is what the other one is for.
func TestUnprotectedChargesAgain(t *testing.T) {
	s := newShop(t, true, gateway.FaultDropAfter).unprotected()
	if r := s.pay("k", order); r.status != 502 || !strings.Contains(r.body, "Não se sabe se o cartão foi cobrado") {
		t.Errorf("%+v", r)
	}
	s.pay("k", order)
	s.pay("k", order)
	s.mustHave(3)
}

// TestProtectedChargesOnce: whatever the gateway does, a client that repeats until
// it has an answer is charged once, and every answer is the same.
func TestProtectedChargesOnce(t *testing.T) {
	for _, fault := range []gateway.Fault{
		gateway.FaultNone, gateway.FaultSlow, gateway.FaultDropAfter, gateway.FaultDropBefore, gateway.FaultErrorAfter,
	} {
		t.Run(string(fault), func(t *testing.T) {
			s := newShop(t, true, fault).protected(umavez.Options{}, Options{})
			var ids [4]string
			var all sync.WaitGroup
			for i := range ids {
				all.Go(func() {
					for ids[i] == "" && t.Context().Err() == nil {
						ids[i] = s.pay("k", order).id
					}
				})
			}
			all.Wait()
			charged := s.mustHave(1)[0]
			for _, id := range ids {
				if id != charged.ID {
					t.Errorf("answered %q, charged %q", id, charged.ID)
				}
			}
			if r := s.pay("k", `{"valor": 49.91, "cartao": "4111111111111111"}`); r.code != "key-reused" {
				t.Errorf("another payment under the same key: %+v", r)
			}
		})
	}
}

// TestWithoutKeys: a payment whose answer got lost is not sent again. When the
// gateway is asked and has it, its answer is the one that everybody gets; when it
// has it not, it stays unknown, since it may still be on its way.
func TestWithoutKeys(t *testing.T) {
	for fault, charges := range map[gateway.Fault]int{gateway.FaultDropAfter: 1, gateway.FaultErrorAfter: 1, gateway.FaultDropBefore: 0} {
		t.Run(string(fault), func(t *testing.T) {
			for _, asked := range []bool{false, true} {
				o := Options{WithoutKeys: true, AskAfter: time.Hour}
				if asked {
					o.AskAfter = 1
				}
				s := newShop(t, false, fault).protected(umavez.Options{}, o)
				if r := s.pay("k", order); r.status != http.StatusBadGateway {
					t.Errorf("first: %+v", r)
				}
				s.pay("k", order) // it finds the step in doubt
				r := s.pay("k", order)
				all := s.mustHave(charges)
				switch {
				case asked && charges > 0:
					if r.status != 201 || r.id != all[0].ID || r.said != "aprovado" {
						t.Errorf("asked: %+v, charged %+v", r, all)
					}
				case r.status != 409 || r.code != "outcome-unknown":
					t.Errorf("asked %v: %+v", asked, r)
				}
			}
		})
	}
}

// TestCompletes: a payment whose client never comes back is finished, once.
func TestCompletes(t *testing.T) {
	s := newShop(t, true, gateway.FaultDropAfter).protected(
		umavez.Options{RecoverEvery: time.Millisecond}, Options{CompleteAfter: time.Millisecond})
	if r := s.pay("k", order); r.status != http.StatusBadGateway {
		t.Errorf("first: %+v", r)
	}
	for state := ""; !strings.Contains(state, `"done"`) && t.Context().Err() == nil; {
		res, err := http.Get(s.api.URL + "/.umavez/keys/k")
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 1000)
		n, _ := res.Body.Read(b)
		res.Body.Close()
		state = string(b[:n])
	}
	if r := s.pay("k", order); r.status != 201 || r.id != s.mustHave(1)[0].ID {
		t.Errorf("after: %+v", r)
	}
}

// TestNeedsSealing: requests hold card numbers, so an engine that would keep them
// in plain is refused at wiring.
func TestNeedsSealing(t *testing.T) {
	engine, err := umavez.New(memstore.New(memstore.Options{}), umavez.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Protected(engine, Options{}); err == nil || !strings.Contains(err.Error(), "in plain") {
		t.Errorf("got %v", err)
	}
}

// TestStored: what a reconciler says is what the handler would have said.
func TestStored(t *testing.T) {
	s := newShop(t, true).protected(umavez.Options{}, Options{})
	r := s.pay("k", order)
	stored := Stored(Charge{ID: r.id, Approved: true})
	if stored.Status != r.status || string(stored.Body) != r.body {
		t.Errorf("stored %d %s, answered %d %s", stored.Status, stored.Body, r.status, r.body)
	}
	for name := range stored.Header {
		if got, want := stored.Header.Get(name), r.header.Get(name); got != want {
			t.Errorf("%s: %q, answered %q", name, got, want)
		}
	}
}
