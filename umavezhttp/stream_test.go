package umavezhttp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/umavezhttp"
)

// listen serves a handler over HTTP/1.1, or over TLS and HTTP/2.
func listen(t testing.TB, h http.Handler, h2 bool) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	if h2 {
		server.EnableHTTP2 = true
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return server
}

// fetch sends a payment to a server and reads the whole answer.
func fetch(t testing.TB, server *httptest.Server, key string) (reply, error) {
	t.Helper()
	resp, err := server.Client().Do(socketRequest(t.Context(), t, server.URL, key))
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(body), resp.Trailer}, err
}

func mustFetch(t testing.TB, server *httptest.Server, key string) reply {
	t.Helper()
	r, err := fetch(t, server, key)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// overBoth runs a test over HTTP/1.1 and over HTTP/2.
func overBoth(t *testing.T, f func(t *testing.T, h2 bool)) {
	t.Run("h1", func(t *testing.T) { f(t, false) })
	t.Run("h2", func(t *testing.T) { f(t, true) })
}

// TestR9_Flush: what is flushed goes out at once and is recorded as it passes;
// under the cap it is replayed as usual.
func TestR9_Flush(t *testing.T) {
	overBoth(t, func(t *testing.T, h2 bool) {
		var runs atomic.Int64
		read := make(chan struct{})
		server := listen(t, setup{}.opaque(t, counted(&runs, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusAccepted)
			io.WriteString(w, "one\n")
			w.(http.Flusher).Flush()
			<-read
			io.WriteString(w, "two\n")
		})), h2)
		resp, err := server.Client().Do(socketRequest(t.Context(), t, server.URL, "k"))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body := bufio.NewReader(resp.Body)
		if line, err := body.ReadString('\n'); err != nil || line != "one\n" {
			t.Fatalf("first line: %q, %v", line, err)
		}
		close(read) // so the first line came while the handler was still running
		rest, err := io.ReadAll(body)
		if err != nil || string(rest) != "two\n" {
			t.Fatalf("rest: %q, %v", rest, err)
		}
		first := reply{resp.StatusCode, resp.Header, "one\ntwo\n", nil}
		again := mustFetch(t, server, "k")
		if !again.replayed() || runs.Load() != 1 {
			t.Fatalf("replay: %v; ran %d times", again, runs.Load())
		}
		again.header.Del("Content-Length") // the stream had none, its replay may
		again.mustEqual(t, first)
	})
}

// TestR9_NotedBeforeTheFirstLiveByte: the order on the way to the store and the
// client; and what a retry is told while it is live, and when the owner dies.
func TestR9_NotedBeforeTheFirstLiveByte(t *testing.T) {
	var j journal
	store := journaling(&j)
	var rec umavez.Record
	var id umavez.ID
	eng := umavez.Options{Observe: func(o umavez.Observation) { id = o.ID }}
	h := setup{store: store, engine: eng}.opaque(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/pagamentos/42")
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, "part")
		w.(http.Flusher).Flush()
		var err error
		if rec, err = store.Store.Get(r.Context(), id); err != nil {
			t.Error(err)
		}
		panic(http.ErrAbortHandler)
	})
	mustPanic(t, func() { h.ServeHTTP(journalWriter{httptest.NewRecorder(), &j}, newRequest("k")) })
	if want := "claim note header-201 body-4 flush abandon"; j.String() != want {
		t.Errorf("order: %v\nwant:  %v", &j, want)
	}
	var noted umavezhttp.Answer
	if err := noted.UnmarshalBinary(rec.Last); err != nil {
		t.Fatal(err)
	}
	if noted.Status != 201 || noted.Header.Get("Location") != "/pagamentos/42" || noted.Kept != umavezhttp.NotKeptYet {
		t.Errorf("noted: %+v", noted)
	}
	got := post(h, "k")
	got.mustRefuse(t, 409, "outcome-unknown")
	if o := got.problem().Original; o == nil || o.Status != 201 || o.Location != "/pagamentos/42" {
		t.Errorf("original: %+v", o)
	}
}

// TestR9_OverTheCap: a large answer goes out whole, in the same pieces or not,
// and is not replayed; nor is the operation run again.
func TestR9_OverTheCap(t *testing.T) {
	overBoth(t, func(t *testing.T, h2 bool) {
		var runs atomic.Int64
		chunk := strings.Repeat("x", 100<<10)
		server := listen(t, setup{}.opaque(t, counted(&runs, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "/extrato/1")
			for range 20 {
				io.WriteString(w, chunk)
			}
		})), h2)
		if first := mustFetch(t, server, "k"); first.status != 200 || first.body != strings.Repeat(chunk, 20) {
			t.Fatalf("first: %d, %d bytes", first.status, len(first.body))
		}
		got := mustFetch(t, server, "k")
		got.mustRefuse(t, 409, "replay-unavailable")
		if o := got.problem().Original; o == nil || o.Status != 200 || o.Location != "/extrato/1" {
			t.Errorf("original: %+v", o)
		}
		if got.header.Get("Stripe-Should-Retry") != "false" || runs.Load() != 1 {
			t.Errorf("Stripe-Should-Retry %q, ran %d times", got.header.Get("Stripe-Should-Retry"), runs.Load())
		}
	})
}

// TestR9_AtTheCap: an answer that just fits is kept.
func TestR9_AtTheCap(t *testing.T) {
	for size, kept := range map[int]bool{1000: true, 1001: false} {
		h := setup{http: umavezhttp.Options{MaxAnswer: 1000}}.opaque(t, func(w http.ResponseWriter, r *http.Request) {
			for i := range size {
				w.Write([]byte{byte('a' + i%26)})
			}
		})
		first, again := post(h, "k"), post(h, "k")
		if len(first.body) != size || again.replayed() != kept {
			t.Errorf("%d bytes: first %d, replayed %v", size, len(first.body), again.replayed())
		}
	}
}

// TestR9_Endless: an answer that has no end to wait for is done at the switch.
func TestR9_Endless(t *testing.T) {
	for _, media := range []string{
		"text/event-stream", "Text/Event-Stream; charset=utf-8", "multipart/x-mixed-replace; boundary=b",
		"application/grpc", "application/grpc+proto",
	} {
		var j journal
		var runs atomic.Int64
		h := setup{store: journaling(&j)}.opaque(t, counted(&runs, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", media)
			io.WriteString(w, "data: 1\n\n")
			j.add("wrote")
			w.(http.Flusher).Flush()
			if err := umavez.Keep(r.Context()); err == nil {
				t.Error("a mark after the first byte is no error")
			}
		}))
		w := httptest.NewRecorder()
		h.ServeHTTP(journalWriter{w, &j}, newRequest("k"))
		if want := "claim complete header-200 body-9 wrote flush"; j.String() != want {
			t.Errorf("%s: order: %v\nwant: %v", media, &j, want)
		}
		post(h, "k").mustRefuse(t, 409, "replay-unavailable")
		if runs.Load() != 1 {
			t.Errorf("%s: ran %d times", media, runs.Load())
		}
	}
}

// TestR9_EndlessThatFails: an error of that type is an answer like any other.
func TestR9_EndlessThatFails(t *testing.T) {
	var runs atomic.Int64
	h := setup{}.opaque(t, counted(&runs, answers(429, "data: later\n\n", "Content-Type", "text/event-stream")))
	post(h, "k")
	if post(h, "k"); runs.Load() != 2 {
		t.Errorf("a released stream: ran %d times", runs.Load())
	}
}

// TestR9_EndlessStopsWithItsClient: once the answer is a stream without an end,
// the handler must learn that nobody listens any more.
func TestR9_EndlessStopsWithItsClient(t *testing.T) {
	overBoth(t, func(t *testing.T, h2 bool) {
		stopped := make(chan error, 1)
		server := listen(t, setup{}.opaque(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: 1\n\n")
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
				stopped <- nil
			case <-time.After(30 * time.Second):
				stopped <- errors.New("the handler streams on after its client has left")
			}
		}), h2)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		resp, err := server.Client().Do(socketRequest(ctx, t, server.URL, "k"))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if line, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || line != "data: 1\n" {
			t.Fatalf("first line: %q, %v", line, err)
		}
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}

// TestR9_Hijack: the connection is the handler's, and the operation done.
func TestR9_Hijack(t *testing.T) {
	var runs atomic.Int64
	server := listen(t, setup{}.opaque(t, counted(&runs, func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		if _, err := w.Write([]byte("x")); !errors.Is(err, http.ErrHijacked) {
			t.Errorf("write after the hijack: %v", err)
		}
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: eco\r\n\r\n")
		rw.Flush()
		line, _ := rw.ReadString('\n')
		fmt.Fprint(rw, line)
		rw.Flush()
	})), false)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /pagamentos HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Length: %d\r\nContent-Type: application/json\r\n\r\n%s", len(payment), payment)
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != 101 {
		t.Fatalf("got %v, %v", resp, err)
	}
	fmt.Fprint(conn, "eco\n")
	if line, err := in.ReadString('\n'); err != nil || line != "eco\n" {
		t.Fatalf("echo: %q, %v", line, err)
	}
	got := mustFetch(t, server, "k")
	got.mustRefuse(t, 409, "replay-unavailable")
	if o := got.problem().Original; o == nil || o.Status != 101 || runs.Load() != 1 {
		t.Errorf("original %+v; ran %d times", o, runs.Load())
	}
}

// TestR9_LeaseLostBeforeTheFirstLiveByte: nothing of an answer goes out whose
// key is somebody else's by then.
func TestR9_LeaseLostBeforeTheFirstLiveByte(t *testing.T) {
	store := memstore.New(memstore.Options{})
	answer := umavezhttp.Answer{Status: 200, Body: []byte("settled")}
	h := setup{store: store}.opaque(t, func(w http.ResponseWriter, r *http.Request) {
		settled, err := answer.MarshalBinary()
		if err != nil {
			t.Error(err)
		}
		// Whoever completes in the attempt's name makes its own end come late.
		if err := store.Complete(t.Context(), umavez.FromContext(r.Context()).Lease(), settled, umavez.Retention{Retain: time.Hour}); err != nil {
			t.Error(err)
		}
		io.WriteString(w, "mine")
		w.(http.Flusher).Flush()
		if _, err := io.WriteString(w, "more"); !errors.Is(err, umavez.ErrLeaseLost) {
			t.Errorf("write: %v", err)
		}
	})
	if got := post(h, "k"); got.status != 200 || got.body != "settled" || !got.replayed() {
		t.Errorf("got %v", got)
	}
}

// TestR9_StoreDownAtTheFlush: what ran goes out all the same, marked.
func TestR9_StoreDownAtTheFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faultyStore{Store: memstore.New(memstore.Options{}), before: func(op string) error {
			if op == "note" {
				return errStoreDown
			}
			return nil
		}}
		h := setup{store: store}.opaque(t, func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "one")
			w.(http.Flusher).Flush()
			io.WriteString(w, "two")
		})
		if got := post(h, "k"); got.body != "onetwo" || got.header.Get("Idempotency-Status") != "unsaved" {
			t.Errorf("first: %v", got)
		}
		if got := post(h, "k"); got.body != "onetwo" || !got.replayed() {
			t.Errorf("again: %v", got)
		}
	})
}

// brokenWriter is a client that has left: nothing can be written to it.
type brokenWriter struct{ *httptest.ResponseRecorder }

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func (brokenWriter) WriteString(string) (int, error) { return 0, errors.New("broken pipe") }

// TestR9_ClientLeavesALiveAnswer: the operation goes on to its end, and its
// answer is stored whole (rule R7 holds here, too).
func TestR9_ClientLeavesALiveAnswer(t *testing.T) {
	h := setup{}.opaque(t, func(w http.ResponseWriter, r *http.Request) {
		for range 3 {
			if _, err := io.WriteString(w, "piece "); err != nil {
				return // as careful handlers do
			}
			w.(http.Flusher).Flush()
		}
	})
	h.ServeHTTP(brokenWriter{httptest.NewRecorder()}, newRequest("k"))
	if got := post(h, "k"); got.body != "piece piece piece " || !got.replayed() {
		t.Errorf("got %v", got)
	}
}

// TestR9_LiveOutcome: a live answer ends by what its status says.
func TestR9_LiveOutcome(t *testing.T) {
	for status, want := range map[int]struct {
		runs   int64
		status int
	}{
		201: {1, 201}, 404: {1, 404}, 429: {2, 429}, 500: {1, 500},
	} {
		var runs atomic.Int64
		h := setup{}.opaque(t, counted(&runs, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			io.WriteString(w, "x")
			w.(http.Flusher).Flush()
			if err := umavez.Release(r.Context()); !errors.Is(err, umavez.ErrAnswered) {
				t.Errorf("a mark after the first byte: %v", err)
			}
		}))
		post(h, "k")
		if got := post(h, "k"); got.status != want.status || runs.Load() != want.runs {
			t.Errorf("%d: retry %v; ran %d times", status, got, runs.Load())
		}
	}
}

// TestR9_WritesOnAndOn: a handler that never stops writing must learn, some time,
// that its client has left. Then its answer broke off.
func TestR9_WritesOnAndOn(t *testing.T) {
	piece := make([]byte, 1<<20)
	var wrote int
	h := setup{}.opaque(t, func(w http.ResponseWriter, r *http.Request) {
		for {
			if _, err := w.Write(piece); err != nil {
				return
			}
			if wrote++; wrote > 1000 {
				t.Error("wrote a thousand megabytes to nobody")
				return
			}
		}
	})
	h.ServeHTTP(brokenWriter{httptest.NewRecorder()}, newRequest("k"))
	if wrote < 10 {
		t.Errorf("stopped after %d megabytes: a client that leaves must not cut an operation short", wrote)
	}
	post(h, "k").mustRefuse(t, 409, "outcome-unknown")
}
