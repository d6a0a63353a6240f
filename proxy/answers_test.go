package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/internal/wire"
)

// TestR9_ChunkedIsNoStream: a body that comes in chunks, one of them late, is a
// body: stored and replayed. So is what the upstream flushes by itself.
func TestR9_ChunkedIsNoStream(t *testing.T) {
	const body = `{"id":"42","status":"aprovado","moeda":1}`
	for _, protocol := range protocolNames {
		book := newLedger()
		up := newUpstream(t, protocol, func(w http.ResponseWriter, r *http.Request) {
			book.act(r)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			for _, part := range []string{body[:10], body[10:20], body[20:]} {
				io.WriteString(w, part)
				http.NewResponseController(w).Flush()
			}
		})
		s := newSidecar(t, up.url)
		first, again := s.pay("k1", "x"), s.pay("k1", "x")
		if first.status != http.StatusCreated || first.body != body || first.replayed() {
			t.Errorf("%s: the first got %v", protocol, first)
		}
		if again.status != http.StatusCreated || again.body != body || !again.replayed() {
			t.Errorf("%s: the retry got %v", protocol, again)
		}
		book.want(t, "k1", 1)
	}
}

// TestR9_OldServers: an answer of HTTP/1.0, whose end is the connection's, is one
// like any other.
func TestR9_OldServers(t *testing.T) {
	book := newLedger()
	address := rawUpstream(t, playing(book, says("HTTP/1.0 201 Created\r\nContent-Type: application/json\r\n\r\n{\"id\":\"42\"}")))
	s := newSidecar(t, "http://"+address)
	first, again := s.pay("k1", "x"), s.pay("k1", "x")
	if first.status != http.StatusCreated || again.body != first.body || !again.replayed() || first.body != `{"id":"42"}` {
		t.Errorf("got %v, then %v", first, again)
	}
	book.want(t, "k1", 1)
}

// TestR9_Streams: event streams go out as they come, and are not kept.
func TestR9_Streams(t *testing.T) {
	for _, media := range []string{"text/event-stream", "Text/Event-Stream; charset=utf-8", "multipart/x-mixed-replace;boundary=b", "application/grpc+proto"} {
		book := newLedger()
		next := make(chan struct{})
		up := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
			book.act(r)
			w.Header().Set("Content-Type", media)
			io.WriteString(w, "data: 1\n\n")
			http.NewResponseController(w).Flush()
			<-next
			io.WriteString(w, "data: 2\n\n")
		})
		s := newSidecar(t, up.url)
		res, err := s.http.Do(s.request("POST", "/pay", "x", keyName, "k1"))
		if err != nil {
			t.Fatal(err)
		}
		first := make([]byte, len("data: 1\n\n"))
		if _, err := io.ReadFull(res.Body, first); err != nil || string(first) != "data: 1\n\n" {
			t.Errorf("%s: the first event is %q, %v", media, first, err)
		}
		// The upstream still waits for us: what came did not wait for its end.
		close(next)
		if rest, err := io.ReadAll(res.Body); err != nil || string(rest) != "data: 2\n\n" {
			t.Errorf("%s: the rest is %q, %v", media, rest, err)
		}
		res.Body.Close()
		if again := s.pay("k1", "x"); again.code() != wire.CodeReplayUnavailable {
			t.Errorf("%s: the retry got %v, want replay-unavailable", media, again)
		}
		book.want(t, "k1", 1)
	}
}

// TestR9_LongAnswer: what is over the cap goes out, is not kept, and never runs
// again.
func TestR9_LongAnswer(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 5<<20/16)
	for _, chunked := range []bool{false, true} {
		book := newLedger()
		up := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
			book.act(r)
			if !chunked {
				w.Header().Set("Content-Length", fmt.Sprint(len(long)))
			}
			w.Header().Set("Location", "/pagamentos/42")
			w.WriteHeader(http.StatusCreated)
			io.WriteString(w, long)
		})
		s := newSidecar(t, up.url)
		if first := s.pay("k1", "x"); first.status != http.StatusCreated || first.body != long || first.broken != nil {
			t.Errorf("chunked %v: the first got %d and %d bytes, %v", chunked, first.status, len(first.body), first.broken)
		}
		again := s.pay("k1", "x")
		if again.code() != wire.CodeReplayUnavailable || !strings.Contains(again.body, `"location":"/pagamentos/42"`) {
			t.Errorf("chunked %v: the retry got %v", chunked, again)
		}
		book.want(t, "k1", 1)
	}
}

// TestR2_HundredAtOnce: one execution, and its answer for everybody.
func TestR2_HundredAtOnce(t *testing.T) {
	book := newLedger()
	up := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
		book.act(r)
		<-time.After(50 * time.Millisecond)
		paid(w, r)
	})
	// A busy machine may take more than the usual five seconds.
	s := newSidecar(t, up.url, func(o *Options) { o.HTTP.Wait = time.Minute })
	var wg sync.WaitGroup
	var mu sync.Mutex
	first := 0
	for range 100 {
		wg.Go(func() {
			got, err := s.do(s.request("POST", "/pay", "x", keyName, "k1"))
			if err != nil || got.status != http.StatusCreated || got.body != `{"id":"42","status":"aprovado"}` {
				t.Errorf("got %v, %v", got, err)
			}
			if !got.replayed() {
				mu.Lock()
				first++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if first != 1 {
		t.Errorf("%d answers say that they are the first", first)
	}
	book.want(t, "k1", 1)
}

// TestR7_ClientLeaves: the operation goes on to its end, and is stored.
func TestR7_ClientLeaves(t *testing.T) {
	book := newLedger()
	started, finish := make(chan struct{}), make(chan struct{})
	up := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
		book.act(r)
		close(started)
		select {
		case <-finish:
		case <-r.Context().Done():
			t.Error("the upstream's request was given up with its client")
		}
		paid(w, r)
	})
	s := newSidecar(t, up.url)
	ctx, leave := context.WithCancel(context.Background())
	left := make(chan error, 1)
	go func() {
		res, err := s.http.Do(s.request("POST", "/pay", "x", keyName, "k1").WithContext(ctx))
		if err == nil {
			res.Body.Close()
		}
		left <- err
	}()
	<-started
	leave()
	if err := <-left; err == nil {
		t.Error("the client got an answer after it had left")
	}
	close(finish)
	if again := s.pay("k1", "x"); again.status != http.StatusCreated || !again.replayed() {
		t.Errorf("the retry got %v", again)
	}
	book.want(t, "k1", 1)
}

// TestA6_Outcome: what the application says of its own answer outranks the
// status, and does not reach the client.
func TestA6_Outcome(t *testing.T) {
	for _, c := range []struct {
		outcome []string
		status  int
		state   umavez.State
		effects int // after a retry
		retry   string
	}{
		{nil, 201, umavez.Done, 1, "replayed"},
		{[]string{"released"}, 503, umavez.Vacant, 2, "first"},
		{[]string{"Released "}, 201, umavez.Vacant, 2, "first"},
		{[]string{"kept"}, 503, umavez.Done, 1, "replayed"},
		{[]string{"kept"}, 429, umavez.Done, 1, "replayed"},
		{[]string{"no-body"}, 201, umavez.Done, 1, wire.CodeReplayUnavailable},
		{[]string{"nonsense"}, 201, umavez.Done, 1, "replayed"},
		{[]string{"nonsense"}, 503, umavez.Lost, 1, "replayed"},
		{[]string{"released", "released"}, 503, umavez.Lost, 1, "replayed"},
	} {
		t.Run(fmt.Sprint(c.outcome, c.status), func(t *testing.T) {
			book := newLedger()
			up := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
				book.act(r)
				if c.outcome != nil {
					w.Header()["Idempotency-Outcome"] = c.outcome
				}
				w.WriteHeader(c.status)
				io.WriteString(w, "body")
			})
			s := newSidecar(t, up.url)
			first := s.pay("k1", "x")
			if first.status != c.status || first.body != "body" || len(first.header["Idempotency-Outcome"]) > 0 {
				t.Errorf("the first got %v", first)
			}
			if rec := s.record("k1"); rec.State != c.state {
				t.Errorf("the record is %v, want %v", rec.State, c.state)
			}
			again := s.pay("k1", "x")
			retry := again.code()
			switch {
			case again.replayed():
				retry = "replayed"
			case retry == "":
				retry = "first"
			}
			if retry != c.retry {
				t.Errorf("the retry got %v, want %s", again, c.retry)
			}
			book.want(t, "k1", c.effects)
		})
	}
}

// TestA6_NotKeyed: the header is the sidecar's also where nothing is protected.
func TestA6_NotKeyed(t *testing.T) {
	up := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Idempotency-Outcome", "kept")
		paid(w, r)
	})
	s := newSidecar(t, up.url)
	for _, path := range []string{"/pay", "/other"} {
		if got := s.send("POST", path, "x"); got.status != http.StatusCreated || got.header.Get("Idempotency-Outcome") != "" {
			t.Errorf("%s: got %v", path, got)
		}
	}
}

// TestA6_OfABrokenAnswer: an answer that does not arrive says nothing, whatever
// its header says.
func TestA6_OfABrokenAnswer(t *testing.T) {
	book := newLedger()
	address := rawUpstream(t, playing(book, says("HTTP/1.1 503 X\r\nIdempotency-Outcome: released\r\nContent-Length: 9\r\n\r\nbro")))
	s := newSidecar(t, "http://"+address)
	if got := s.pay("k1", "x"); got.code() != wire.CodeOutcomeUnknown {
		t.Errorf("got %v", got)
	}
	if rec := s.record("k1"); rec.State != umavez.Lost {
		t.Errorf("the record is %v, want lost", rec.State)
	}
}

// TestA7_CORSOfTheApplication: Access-Control-* and Vary are replayed to the
// origin that they were for.
func TestA7_CORSOfTheApplication(t *testing.T) {
	up := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
		w.Header().Add("Vary", "Origin")
		paid(w, r)
	})
	s := newSidecar(t, up.url)
	const loja, outra = "https://loja.example", "https://outra.example"
	s.pay("k1", "x", "Origin", loja)
	for origin, want := range map[string]string{loja: loja, outra: ""} {
		got := s.pay("k1", "x", "Origin", origin)
		if !got.replayed() || got.header.Get("Access-Control-Allow-Origin") != want || got.header.Get("Vary") != "Origin" {
			t.Errorf("from %s got %v", origin, got)
		}
	}
}

// TestA8_Identity: the upstream of a protected request is asked for what any
// client can read; what it encodes all the same is replayed as it is. Others
// get what they asked for.
func TestA8_Identity(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]string{}
	up := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[r.URL.Path+r.Header.Get(wire.IdempotencyKey)] = strings.Join(r.Header["Accept-Encoding"], "|")
		mu.Unlock()
		if r.Header.Get("Encode") != "" {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Vary", "Accept-Encoding")
		}
		io.WriteString(w, "\x1f\x8bbody")
	})
	s := newSidecar(t, up.url)
	s.pay("k1", "x", "Accept-Encoding", "br, gzip")
	s.pay("k2", "x")
	s.send("POST", "/other", "x", "Accept-Encoding", "br, gzip")
	s.send("POST", "/none", "x")
	for what, want := range map[string]string{"/payk1": "identity", "/payk2": "identity", "/other": "br, gzip", "/none": ""} {
		if asked[what] != want {
			t.Errorf("%s asked for %q, want %q", what, asked[what], want)
		}
	}
	s.pay("k3", "x", "Encode", "yes")
	again := s.pay("k3", "x", "Encode", "yes")
	if again.body != "\x1f\x8bbody" || again.header.Get("Content-Encoding") != "gzip" || again.header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("what was encoded is replayed as %v", again)
	}
}

// TestA9_InformationAndTrailers: 1xx pass as they come, declared trailers are kept.
func TestA9_InformationAndTrailers(t *testing.T) {
	for _, protocol := range protocolNames {
		up := newUpstream(t, protocol, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "</style.css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("Link")
			w.Header().Set("Trailer", "Checksum")
			w.Header().Set("X-Request", r.Trailer.Get("Request-Checksum"))
			w.WriteHeader(http.StatusCreated)
			io.WriteString(w, "body")
			w.Header().Set("Checksum", "abc")
		})
		s := newSidecar(t, up.url)
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, "POST /pay HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k1\r\nTE: trailers\r\nContent-Length: 1\r\n\r\nx")
		in := bufio.NewReader(c)
		early, err := http.ReadResponse(in, nil)
		if err != nil || early.StatusCode != http.StatusEarlyHints || early.Header.Get("Link") == "" {
			t.Fatalf("%s: the first answer is %v, %v", protocol, early, err)
		}
		final, err := http.ReadResponse(in, nil)
		if err != nil || final.StatusCode != http.StatusCreated || final.Header.Get("Link") != "" {
			t.Fatalf("%s: the second answer is %v, %v", protocol, final, err)
		}
		drain(final.Body)
		if final.Trailer.Get("Checksum") != "abc" {
			t.Errorf("%s: the trailers are %v", protocol, final.Trailer)
		}
		again := s.pay("k1", "x")
		if !again.replayed() || again.trailer.Get("Checksum") != "abc" || again.body != "body" {
			t.Errorf("%s: the retry got %v, trailers %v", protocol, again, again.trailer)
		}
	}
}

// TestProtocols: clients and upstreams of both versions of HTTP, in each pairing.
func TestProtocols(t *testing.T) {
	for _, inbound := range protocolNames {
		for _, outbound := range protocolNames {
			book := newLedger()
			up := newUpstream(t, outbound, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				book.act(r)
				w.WriteHeader(http.StatusCreated)
				fmt.Fprintf(w, "%s over HTTP/%d", body, r.ProtoMajor)
			})
			s := newSidecar(t, up.url)
			transport := &http.Transport{Protocols: new(http.Protocols)}
			transport.Protocols.SetHTTP1(inbound == "http")
			transport.Protocols.SetUnencryptedHTTP2(inbound == "h2c")
			t.Cleanup(transport.CloseIdleConnections)
			s.http.Transport = transport
			want := "corpo over HTTP/" + map[string]string{"http": "1", "h2c": "2"}[outbound]
			for _, replayed := range []bool{false, true} {
				got := s.pay("k1", "corpo")
				if got.status != http.StatusCreated || got.body != want || got.replayed() != replayed {
					t.Errorf("%s to %s: got %v", inbound, outbound, got)
				}
			}
			if got := s.send("POST", "/other", "corpo"); got.body != want {
				t.Errorf("%s to %s: what passes got %v", inbound, outbound, got)
			}
			book.want(t, "k1", 1)
		}
	}
}

// TestR9_LongAnswerInLittleMemory: 5 MiB pass with less than 2 MiB of them here.
func TestR9_LongAnswerInLittleMemory(t *testing.T) {
	part := []byte(strings.Repeat("x", 64<<10))
	halfway, goOn := make(chan struct{}), make(chan struct{})
	up := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/pay" {
			return // it only warms everything up
		}
		for i := range 80 {
			if i == 60 {
				close(halfway)
				<-goOn
			}
			w.Write(part)
		}
	})
	s := newSidecar(t, up.url)
	s.send("POST", "/other", "x")
	before := liveHeap()
	res, err := s.http.Do(s.request("POST", "/pay", "x", keyName, "k1"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.CopyN(io.Discard, res.Body, 3<<20); err != nil {
		t.Fatal(err)
	}
	<-halfway
	if extra := int64(liveHeap()) - int64(before); extra > 2<<20 {
		t.Errorf("%d bytes more are in use in the middle of the answer", extra)
	}
	close(goOn)
	drain(res.Body)
}

// liveHeap is how much of the heap is in use.
func liveHeap() uint64 {
	runtime.GC()
	runtime.GC() // what pools hold is let go in two steps
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
