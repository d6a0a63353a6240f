package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/umavez/umavez/cmd/umavez/internal/keys"
)

// player plays with a board over its API, as the page does.
type player struct {
	t   *testing.T
	b   *Board
	url string
}

func newPlayer(t *testing.T, withoutKeys bool) *player {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	b := NewBoard(context.Background(), program)
	// Nobody comes in between, however slow the machine is.
	b.times.CompleteAfter, b.times.AskAfter = time.Hour/10, time.Hour
	server := httptest.NewServer(NewHandler(b))
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		server.Close()
		if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
			t.Errorf("left %v, %v", left, err)
		}
	})
	p := &player{t: t, b: b, url: server.URL}
	p.post(http.StatusAccepted, "start", map[string]any{"withoutKeys": withoutKeys})
	p.until("a world", func(v View) bool { return v.Ready && !v.Busy })
	return p
}

// post sends a command and returns the key.
func (p *player) post(want int, what string, body any) string {
	p.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	res, err := http.Post(p.url+"/api/"+what, "application/json", strings.NewReader(string(text)))
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	var got struct{ Key, Error string }
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil || res.StatusCode != want {
		p.t.Fatalf("%s %s: answered %d %+v, %v; want %d", what, text, res.StatusCode, got, err, want)
	}
	return got.Key
}

// until looks until the board is so.
func (p *player) until(what string, so func(View) bool) (v View) {
	p.t.Helper()
	err := until(p.t.Context(), func() (bool, error) {
		v = p.state()
		return so(v), nil
	})
	if err != nil {
		p.t.Fatalf("%s: %v; the board is %+v", what, err, v)
	}
	return v
}

func (p *player) state() (v View) {
	p.t.Helper()
	res, err := http.Get(p.url + "/api/state")
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&v); err != nil {
		p.t.Fatal(err)
	}
	return v
}

// act does something and waits until it is over; the latest payment comes back.
func (p *player) act(what string, body any) PaymentView {
	p.t.Helper()
	p.post(http.StatusAccepted, what, body)
	v := p.until(what, func(v View) bool { return !v.Busy })
	if v.Failed != "" || !v.Alive[Protected] || !v.Alive[Unprotected] {
		p.t.Errorf("%s %v: %+v", what, body, v)
	}
	return v.Payments[0]
}

func (p *player) pay(trouble string) PaymentView {
	p.t.Helper()
	return p.act("pay", map[string]string{"trouble": trouble})
}

func (p *player) again(what, key string) PaymentView {
	p.t.Helper()
	return p.act(what, map[string]string{"key": key})
}

// mustBe holds a payment against what it must have come to.
func (p *player) mustBe(when string, v PaymentView, state string, unprotected, protected int) {
	p.t.Helper()
	if v.Life.State != state {
		p.t.Errorf("%s: the key is %s, want %s: %+v", when, v.Life.State, state, v)
	}
	if a, b := len(v.Sides[Unprotected].Charges), len(v.Sides[Protected].Charges); a != unprotected || b != protected {
		p.t.Errorf("%s: charged %d and %d times, want %d and %d", when, a, b, unprotected, protected)
	}
}

// lastOf is what the last attempt of a side was answered.
func lastOf(v PaymentView, s Side) reply {
	all := v.Sides[s].Attempts
	return all[len(all)-1].reply
}

// TestBoard presses every button, with a gateway that honours keys.
func TestBoard(t *testing.T) {
	p := newPlayer(t, false)
	v := p.pay("none")
	p.mustBe("pay", v, doneState, 1, 1)
	v = p.again("retry", v.Key)
	p.mustBe("pay and retry", v, doneState, 2, 1)
	if a := lastOf(v, Protected); a.Status != 201 || !a.Replayed || a.ID != v.Sides[Protected].Charges[0] {
		t.Errorf("the retry was answered %+v", a)
	}
	v = p.pay("twice")
	p.mustBe("twice", v, doneState, 2, 1)

	v = p.pay("drop")
	p.mustBe("drop", v, "lost", 1, 1)
	v = p.again("retry", v.Key)
	p.mustBe("drop and retry", v, doneState, 2, 1)

	v = p.pay("kill")
	if lastOf(v, Protected).Status != 0 || len(v.Sides[Protected].Charges) != 1 {
		t.Errorf("kill: %+v", v)
	}
	v = p.again("retry", v.Key)
	p.mustBe("kill and retry", v, doneState, 2, 1)
	if v.Life.Tries != 2 {
		t.Errorf("kill and retry: %+v", v.Life)
	}
	if s := p.state(); s.Charges[Unprotected] != 8 || s.Charges[Protected] != 4 || len(s.Payments) != 4 {
		t.Errorf("in the end: %+v", s)
	}
}

// TestBoardWithoutKeys: what was killed is unknown and not sent again, until it
// is settled; and a switch begins anew.
func TestBoardWithoutKeys(t *testing.T) {
	p := newPlayer(t, true)
	v := p.pay("kill")
	v = p.again("retry", v.Key)
	p.mustBe("kill and retry", v, keys.StateUnknown, 2, 1)
	v = p.again("retry", v.Key)
	p.mustBe("once more", v, keys.StateUnknown, 3, 1)
	if a := lastOf(v, Protected); a.Status != http.StatusConflict || a.Code != "outcome-unknown" {
		t.Errorf("the retry was answered %+v", a)
	}
	v = p.again("settle", v.Key)
	p.mustBe("settle", v, doneState, 3, 1)
	v = p.again("retry", v.Key)
	p.mustBe("settle and retry", v, doneState, 4, 1)
	if a := lastOf(v, Protected); !v.Life.Settled || a.Status != 201 || a.ID != v.Sides[Protected].Charges[0] {
		t.Errorf("the retry was answered %+v; %+v", a, v.Life)
	}
	p.post(http.StatusAccepted, "start", map[string]any{"withoutKeys": false})
	s := p.until("another world", func(v View) bool { return v.Ready && !v.Busy })
	if s.WithoutKeys || len(s.Payments) != 0 || s.Charges[Protected] != 0 {
		t.Errorf("after the switch: %+v", s)
	}
}

// TestBoardRefuses: what makes no sense, and a second thing at a time.
func TestBoardRefuses(t *testing.T) {
	p := newPlayer(t, false)
	p.post(http.StatusBadRequest, "pay", map[string]string{"trouble": "x"})
	p.post(http.StatusBadRequest, "pay", map[string]string{"troubles": "none"})
	p.post(http.StatusNotFound, "retry", map[string]string{"key": "pedido-1"})
	p.post(http.StatusNotFound, "settle", map[string]string{"key": "pedido-1"})
	p.pay("none")
	p.setBusy(true)
	p.post(http.StatusConflict, "pay", map[string]string{"trouble": "none"})
	p.post(http.StatusConflict, "start", map[string]bool{"withoutKeys": true})
	p.setBusy(false)

	for header, value := range map[string]string{"Origin": "https://elsewhere.example", "Host": "elsewhere.example"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/api/pay", strings.NewReader(`{"trouble":"none"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(header, value)
		if header == "Host" {
			req.Host = value
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode < 400 {
			t.Errorf("%s %s: answered %d", header, value, res.StatusCode)
		}
	}
	if n := len(p.state().Payments); n != 1 {
		t.Errorf("%d payments", n)
	}
}

// setBusy makes as if something were under way.
func (p *player) setBusy(busy bool) {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	p.b.busy = busy
}

// TestEvents: who watches is told of what changes, and only then; and of the key
// of a killed server it is told when it is lost, though nobody did anything.
func TestEvents(t *testing.T) {
	p := newPlayer(t, false)
	res, err := http.Get(p.url + "/api/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got := res.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("it is %s", got)
	}
	p.post(http.StatusAccepted, "pay", map[string]string{"trouble": "kill"})
	seen := map[string]bool{}
	lines := bufio.NewReader(res.Body)
	last := ""
	for !seen["lost"] {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%v; seen %v", err, seen)
		}
		text, isData := strings.CutPrefix(line, "data: ")
		if !isData {
			continue
		}
		if text == last {
			t.Error("told of nothing new")
		}
		last = text
		var v View
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		for _, payment := range v.Payments {
			seen[payment.Life.State] = true
		}
	}
}

// TestServe: the page is there, alone, and all ends with its context.
func TestServe(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, stop := context.WithCancel(t.Context())
	out, lines := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, program, "127.0.0.1:0", lines) }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url, _, _ := strings.Cut(strings.TrimPrefix(line, "umavez: demo on "), " ")
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || string(body) != page || !strings.Contains(res.Header.Get("Content-Security-Policy"), "script-src 'sha256-") {
		t.Errorf("the page: %v, %v", res.Header, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if err := Serve(t.Context(), program, "nonsense", io.Discard); err == nil {
		t.Error("it listens on nonsense")
	}
}
