package gateway

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const card = "4111111111111111"

// bench is a running gateway and its ledger's file.
type bench struct {
	t    *testing.T
	url  string
	file string
}

func start(t *testing.T, o Options) *bench {
	t.Helper()
	b := &bench{t: t, file: filepath.Join(t.TempDir(), "ledger.jsonl")}
	b.url = b.open(o).URL
	return b
}

// open starts a gateway on the ledger; another one may have been there before.
func (b *bench) open(o Options) *httptest.Server {
	b.t.Helper()
	book, err := OpenLedger(b.file)
	if err != nil {
		b.t.Fatal(err)
	}
	server := httptest.NewServer(New(book, o))
	b.t.Cleanup(func() { server.Close(); book.Close() })
	return server
}

// charge sends one; err says that no answer came.
func (b *bench) charge(key string) (status int, a Answer, err error) {
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.url+"/cobrancas", strings.NewReader(`{"centavos":4990,"cartao":"`+card+`"}`))
	if err != nil {
		return 0, a, err
	}
	req.Header.Set("Idempotency-Key", key)
	// A transport repeats by itself what carries a key and got no answer.
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return 0, a, err
	}
	defer res.Body.Close()
	return res.StatusCode, a, json.NewDecoder(res.Body).Decode(&a)
}

func (b *bench) get(path string, into any) {
	b.t.Helper()
	res, err := http.Get(b.url + path)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(into); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) post(path, body string) int {
	b.t.Helper()
	res, err := http.Post(b.url+path, "application/json", strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

func (b *bench) known(key string) (k Known) {
	b.t.Helper()
	b.get("/cobrancas?chave="+url.QueryEscape(key), &k)
	return k
}

// waitHeld waits until so many charges are held.
func (b *bench) waitHeld(n int) {
	b.t.Helper()
	for b.t.Context().Err() == nil {
		var s State
		if b.get("/falhas", &s); s.Held == n {
			return
		}
	}
}

// TestFaults: of each fault, what the client sees and what the card was charged.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		fault   Fault
		status  int // 0: no answer
		charges int
	}{
		{FaultNone, 201, 1},
		{FaultSlow, 201, 1},
		{FaultDropAfter, 0, 1},
		{FaultDropBefore, 0, 0},
		{FaultErrorAfter, 500, 1},
		{FaultDecline, 402, 0},
	} {
		t.Run(string(c.fault), func(t *testing.T) {
			b := start(t, Options{Slow: 1, Faults: []Fault{c.fault}})
			status, a, err := b.charge("k")
			if status != c.status || (err == nil) != (c.status != 0) {
				t.Errorf("answered %d %+v, %v; want %d", status, a, err, c.status)
			}
			if k := b.known("k"); len(k.Charges) != c.charges || k.UnderWay != 0 {
				t.Errorf("it knows %+v, want %d charges", k, c.charges)
			}
			if status, _, err := b.charge("other"); status != 201 || err != nil {
				t.Errorf("the next charge met the fault, too: %d, %v", status, err)
			}
		})
	}
}

// TestHeld: what is held is known as under way until it is let go, and then
// charged, or lost.
func TestHeld(t *testing.T) {
	for _, c := range []struct {
		fault                    Fault
		underWay, before, charge int
		answered                 bool
	}{
		{FaultHoldBefore, 1, 0, 1, true},
		{FaultHoldAfter, 0, 1, 1, true},
		{FaultHoldAndLose, 1, 0, 0, false},
	} {
		t.Run(string(c.fault), func(t *testing.T) {
			b := start(t, Options{})
			if status := b.post("/falhas", `{"falha":"`+string(c.fault)+`"}`); status != 200 {
				t.Fatalf("the fault was answered %d", status)
			}
			ended := make(chan error)
			go func() { _, _, err := b.charge("k"); ended <- err }()
			b.waitHeld(1)
			if k := b.known("k"); k.UnderWay != c.underWay || len(k.Charges) != c.before {
				t.Errorf("held: it knows %+v", k)
			}
			b.post("/soltar", "")
			if err := <-ended; (err == nil) != c.answered {
				t.Errorf("the client got %v", err)
			}
			if k := b.known("k"); k.UnderWay != 0 || len(k.Charges) != c.charge {
				t.Errorf("after: it knows %+v", k)
			}
		})
	}
}

// TestHonoursKeys: one charge for a key, also among requests at once and after a
// new start on the same ledger; and none of it without the switch.
func TestHonoursKeys(t *testing.T) {
	for _, honour := range []bool{true, false} {
		b := start(t, Options{HonourKeys: honour})
		const n = 8
		var all sync.WaitGroup
		ids := make([]string, n)
		for i := range n {
			all.Go(func() {
				_, a, err := b.charge("k")
				if err != nil {
					t.Error(err)
				}
				ids[i] = a.ID
			})
		}
		all.Wait()
		b.url = b.open(Options{HonourKeys: honour}).URL
		_, again, err := b.charge("k")
		if err != nil {
			t.Error(err)
		}
		ids = append(ids, again.ID)
		slices.Sort(ids)
		different, want := len(slices.Compact(ids)), n+1
		if honour {
			want = 1
		}
		if charges := len(b.known("k").Charges); different != want || charges != want {
			t.Errorf("honour %v: %d answers and %d charges, want %d", honour, different, charges, want)
		}
	}
}

// TestHeldThenRepeated: a charge that was held before it was made is not made any
// more once a later request has charged its key.
func TestHeldThenRepeated(t *testing.T) {
	b := start(t, Options{HonourKeys: true, Faults: []Fault{FaultHoldBefore}})
	first := make(chan string)
	go func() { _, a, _ := b.charge("k"); first <- a.ID }()
	b.waitHeld(1)
	_, second, err := b.charge("k")
	b.post("/soltar", "")
	if id := <-first; err != nil || id != second.ID || len(b.known("k").Charges) != 1 {
		t.Errorf("answered %q and %q, %v; charged %+v", id, second.ID, err, b.known("k"))
	}
}

// TestLedger: what stands in the file, and that a card's number does not.
func TestLedger(t *testing.T) {
	b := start(t, Options{})
	_, a, err := b.charge("k")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(b.file)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"id":"` + a.ID + `","chave":"k","centavos":4990,"cartao":"1111"}` + "\n"; string(text) != want {
		t.Errorf("the ledger holds %q, want %q", text, want)
	}
	if err := os.WriteFile(b.file, []byte("half a li"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLedger(b.file); err == nil {
		t.Error("a damaged ledger was opened")
	}
	if _, err := OpenLedger(filepath.Join(b.file, "below")); err == nil {
		t.Error("a ledger was opened where none can be")
	}
}

// TestRefuses: nonsense is charged by nobody.
func TestRefuses(t *testing.T) {
	b := start(t, Options{})
	for path, bodies := range map[string][]string{
		"/cobrancas": {"", "[]", `{"centavos":0,"cartao":"4111"}`, `{"centavos":-1,"cartao":"4111"}`, `{"centavos":1,"cartao":"41"}`, `{"centavos":1.5,"cartao":"4111"}`},
		"/falhas":    {"", `{"falha":"x"}`, `{"falha":""}`, `{"falha":"recusa","vezes":0}`, `{"falha":"recusa","vezes":1001}`},
	} {
		for _, body := range bodies {
			if status := b.post(path, body); status != http.StatusBadRequest {
				t.Errorf("%s %s: answered %d", path, body, status)
			}
		}
	}
	var s State
	if b.get("/falhas", &s); len(b.known("").Charges) != 0 || len(s.Coming) != 0 {
		t.Errorf("charged %+v, and to come is %+v", b.known(""), s)
	}
}
