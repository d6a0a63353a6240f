package keys

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/umavezhttp"
)

var update = flag.Bool("update", false, "write the golden files")

// shop is a store with a clock of its own, and a desk over it.
type shop struct {
	t     *testing.T
	store *memstore.Store
	desk  *Local

	mu  sync.Mutex
	now time.Time
}

// noon is when the shop opens.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{t: t, now: noon}
	s.store = memstore.New(memstore.Options{Now: s.clock})
	s.desk = s.over(umavez.Options{})
	return s
}

// over is another desk over the same store.
func (s *shop) over(o umavez.Options) *Local {
	s.t.Helper()
	engine, err := umavez.New(s.store, o)
	if err != nil {
		s.t.Fatal(err)
	}
	return &Local{Engine: engine, Store: s.store, Now: s.clock}
}

func (s *shop) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *shop) later(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// claim lets a key run under an attempt that is the same in every run.
func (s *shop) claim(name string, change ...func(*umavez.ClaimRequest)) umavez.Lease {
	s.t.Helper()
	key := umavez.Key{Scope: umavez.Scope{Namespace: "loja", Principal: "ana"}, Name: name}
	req := umavez.ClaimRequest{
		Attempt: umavez.AttemptID{15: 1}, Lease: 15 * time.Second,
		Namespace: "loja", Scope: key.ScopeID(), Route: "POST /pagamentos",
	}
	for _, c := range change {
		c(&req)
	}
	rec, acquired, err := s.store.Claim(s.t.Context(), key.ID(), req)
	if err != nil || !acquired {
		s.t.Fatalf("claim %s: %v, acquired %v", name, err, acquired)
	}
	return umavez.Lease{ID: key.ID(), Attempt: req.Attempt, Fence: rec.Fence}
}

// unknown is a key whose attempt saw a status that says nothing.
func (s *shop) unknown(name string, change ...func(*umavez.ClaimRequest)) umavez.Lease {
	s.t.Helper()
	l := s.claim(name, change...)
	s.must(s.store.Abandon(s.t.Context(), l, umavez.ReasonStatus, stored(s.t, 502, "bad gateway")))
	return l
}

func (s *shop) done(name string) umavez.Lease {
	s.t.Helper()
	l := s.claim(name)
	s.must(s.store.Complete(s.t.Context(), l, stored(s.t, 201, `{"id":1}`), umavez.Retention{Retain: time.Hour, Tombstone: time.Hour}))
	return l
}

func (s *shop) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func stored(t *testing.T, status int, body string) []byte {
	t.Helper()
	a := umavezhttp.Answer{Status: status, Header: http.Header{"Content-Type": {"text/plain"}}, Body: []byte(body)}
	b, err := a.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func refTo(l umavez.Lease) string { return umavez.Ref{ID: l.ID, Fence: l.Fence}.String() }

// carriers are the same desk asked in both ways.
func (s *shop) carriers() map[string]Desk {
	return map[string]Desk{"local": s.desk, "remote": remoteTo(s.t, NewHandler(s.desk, tokenOf(goodToken), slog.New(slog.DiscardHandler)), goodToken)}
}

const goodToken = "0123456789abcdef-token"

// remoteTo asks a handler without a network between.
func remoteTo(t *testing.T, h http.Handler, token string) *Remote {
	t.Helper()
	r, err := NewRemote("http://127.0.0.1:9091", token)
	if err != nil {
		t.Fatal(err)
	}
	r.http.Transport = direct{h}
	return r
}

type direct struct{ h http.Handler }

// RoundTrip hands the request to the handler.
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.h.ServeHTTP(w, r)
	return w.Result(), nil
}

// codeOf is the code of an error, and its text.
func codeOf(err error) (Code, string) {
	if f, ok := errors.AsType[*Fault](err); ok {
		return f.Code, f.Error()
	}
	return "", ""
}

// refused fails unless the error has the code, and says all of this.
func refused(t *testing.T, what string, err error, code Code, says ...string) {
	t.Helper()
	got, text := codeOf(err)
	if got != code {
		t.Errorf("%s: %v, want a fault with the code %s", what, err, code)
	}
	for _, want := range says {
		if !strings.Contains(text, want) {
			t.Errorf("%s: %q does not say %q", what, text, want)
		}
	}
}

func show(t *testing.T, d Desk, id string) Shown {
	t.Helper()
	s, err := d.Show(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// all pages through a list.
func all(t *testing.T, d Desk, f Filter) (keys []Key) {
	t.Helper()
	for {
		p, err := d.List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, p.Keys...)
		if p.Next == "" {
			return keys
		}
		f.After = p.Next
	}
}

// settle makes a change by Ana.
func settle(ctx context.Context, d Desk, c Change) error {
	if c.Who == "" {
		c.Who = "ana@caixa"
	}
	if c.Reason == "" {
		c.Reason = "found in the gateway's ledger"
	}
	_, err := d.Settle(ctx, c)
	return err
}

// golden compares with a file under testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what came out (go test -update writes it):\n%s", file, got)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b) + "\n"
}
