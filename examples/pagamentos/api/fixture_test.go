package api

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/examples/pagamentos/gateway"
	"github.com/umavez/umavez/keyring"
	"github.com/umavez/umavez/store/memstore"
)

const order = `{"valor": 49.90, "cartao": "4111111111111111"}`

// shop is a payment API over a gateway.
type shop struct {
	t    *testing.T
	book *gateway.Ledger
	gate *Gateway
	api  *httptest.Server
}

// newShop starts the gateway; with makes the API.
func newShop(t *testing.T, honours bool, faults ...gateway.Fault) *shop {
	t.Helper()
	book, err := gateway.OpenLedger(filepath.Join(t.TempDir(), "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gateway.New(book, gateway.Options{HonourKeys: honours, Faults: faults, Slow: 1}))
	t.Cleanup(func() { server.Close(); book.Close() })
	return &shop{t: t, book: book, gate: NewGateway(server.URL)}
}

func (s *shop) with(h http.Handler) *shop {
	s.api = httptest.NewServer(h)
	s.t.Cleanup(s.api.Close)
	return s
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func (s *shop) unprotected() *shop { return s.with(Unprotected(s.gate, quiet())) }

func newEngine(t *testing.T, o umavez.Options) *umavez.Engine {
	t.Helper()
	line, err := keyring.Generate("teste")
	if err != nil {
		t.Fatal(err)
	}
	if o.Sealer, err = keyring.Parse([]byte(line), false); err != nil {
		t.Fatal(err)
	}
	engine, err := umavez.New(memstore.New(memstore.Options{}), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { _ = engine.Run(ctx); close(ended) }()
	t.Cleanup(func() {
		end()
		<-ended
		if err := engine.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return engine
}

func (s *shop) protected(eo umavez.Options, o Options) *shop {
	s.t.Helper()
	o.Gateway, o.Log = s.gate, quiet()
	h, err := Protected(newEngine(s.t, eo), o)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.with(h)
}

// reply is an answer of the API.
type reply struct {
	status   int
	body     string
	header   http.Header
	id, said string // of an Answer
	code     string // of umavez's problem document
}

func (s *shop) pay(key, body string) (r reply) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.api.URL+"/pagamentos", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	var fields struct{ ID, Status, Code any }
	_ = json.Unmarshal(text, &fields) // what it has not, the tests miss
	r = reply{status: res.StatusCode, body: string(text), header: res.Header}
	r.id, _ = fields.ID.(string)
	r.said, _ = fields.Status.(string)
	r.code, _ = fields.Code.(string)
	return r
}

// mustHave looks into the gateway's ledger.
func (s *shop) mustHave(charges int) []gateway.Charge {
	s.t.Helper()
	all := s.book.Charges("")
	if len(all) != charges {
		s.t.Errorf("the ledger holds %+v, want %d charges", all, charges)
	}
	return all
}
