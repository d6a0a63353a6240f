package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/umavez/umavez/internal/wire"
)

// seen is what an upstream got.
type seen struct {
	mu   sync.Mutex
	last *http.Request
	body string
}

// echo keeps each request and answers as a payment does.
func (s *seen) echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.last, s.body = r, string(body)
	s.mu.Unlock()
	paid(w, r)
}

func (s *seen) request() (*http.Request, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, s.body
}

// TestP4_KeyGoesUpstream: once, bare where that can spell it.
func TestP4_KeyGoesUpstream(t *testing.T) {
	var up seen
	u := newUpstream(t, "http", up.echo)
	s := newSidecar(t, u.url, func(o *Options) { o.HTTP.Headers = []string{"X-Idempotency-Key", "PayPal-Request-Id"} })
	for _, c := range []struct {
		fields []string
		name   string
		want   string
	}{
		{[]string{keyName, "abc"}, "Idempotency-Key", "abc"},
		{[]string{keyName, `"abc2"`}, "Idempotency-Key", "abc2"},
		{[]string{keyName, `"a b"`}, "Idempotency-Key", `"a b"`},
		{[]string{keyName, `"a\"b\\"`}, "Idempotency-Key", `"a\"b\\"`},
		{[]string{keyName, `"abc3";v=1`}, "Idempotency-Key", "abc3"},
		{[]string{"x-idempotency-key", `"abc4"`}, "X-Idempotency-Key", "abc4"},
		{[]string{keyName, "abc5", "paypal-request-id", "abc5"}, "Idempotency-Key", "abc5"},
	} {
		if got := s.send("POST", "/pay", "x", c.fields...); got.status != http.StatusCreated {
			t.Errorf("%q: got %v", c.fields, got)
		}
		r, _ := up.request()
		all := map[string][]string{}
		for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key", "Paypal-Request-Id"} {
			if lines := r.Header[name]; len(lines) > 0 {
				all[name] = lines
			}
		}
		if want := (map[string][]string{c.name: {c.want}}); !reflect.DeepEqual(all, want) {
			t.Errorf("%q went upstream as %q, want %q", c.fields, all, want)
		}
	}
}

// TestP4_RequestGoesUpstream: all else as the client sent it.
func TestP4_RequestGoesUpstream(t *testing.T) {
	var up seen
	u := newUpstream(t, "http", up.echo)
	s := newSidecar(t, u.url, func(o *Options) { o.Routes = []Route{{Pattern: "POST /pay/{id}"}} })
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "POST /pay/a%2Fb?x=1;2&y=%zz& HTTP/1.1\r\nHost: loja.example\r\nIdempotency-Key: k1\r\n"+
		"Connection: X-Hop\r\nX-Hop: 1\r\nX-List: a\r\nX-List: b,c\r\nContent-Length: 5\r\n\r\ncorpo")
	if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || res.StatusCode != http.StatusCreated {
		t.Fatalf("got %v, %v", res, err)
	}
	got, body := up.request()
	if got.RequestURI != "/pay/a%2Fb?x=1;2&y=%zz&" || got.Host != "loja.example" || body != "corpo" || got.ContentLength != 5 {
		t.Errorf("the upstream got %s for %s with %q (%d)", got.RequestURI, got.Host, body, got.ContentLength)
	}
	if !reflect.DeepEqual(got.Header["X-List"], []string{"a", "b,c"}) || got.Header["X-Hop"] != nil || got.Header["User-Agent"] != nil {
		t.Errorf("the upstream got %v", got.Header)
	}
}

// TestP4_Lengths: a body has its length when the sidecar knows it, and none has 0.
func TestP4_Lengths(t *testing.T) {
	for _, protocol := range protocolNames {
		var up seen
		u := newUpstream(t, protocol, up.echo)
		s := newSidecar(t, u.url)
		r := s.request("POST", "/pay", "corpo", keyName, "k1")
		r.ContentLength = -1
		if got, err := s.do(r); err != nil || got.status != http.StatusCreated {
			t.Fatalf("got %v, %v", got, err)
		}
		if r, body := up.request(); r.ContentLength != 5 || body != "corpo" || len(r.TransferEncoding) > 0 {
			t.Errorf("%s: a chunked body arrived as %q (%d, %v)", protocol, body, r.ContentLength, r.TransferEncoding)
		}
		s.pay("k2", "")
		if r, body := up.request(); r.ContentLength != 0 || body != "" || len(r.TransferEncoding) > 0 {
			t.Errorf("%s: no body arrived as %q (%d, %v)", protocol, body, r.ContentLength, r.TransferEncoding)
		}
		r = s.request("POST", "/pay", "corpo", keyName, "k3")
		r.ContentLength, r.Trailer = -1, http.Header{"Checksum": {"abc"}}
		if got, err := s.do(r); err != nil || got.status != http.StatusCreated {
			t.Fatalf("got %v, %v", got, err)
		}
		if r, body := up.request(); r.Trailer.Get("Checksum") != "abc" || body != "corpo" {
			t.Errorf("%s: the trailer arrived as %v after %q", protocol, r.Trailer, body)
		}
	}
}

// TestP5_UpstreamsOwnMarker: it passes, and ours is not added to it.
func TestP5_UpstreamsOwnMarker(t *testing.T) {
	up := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(wire.IdempotentReplayed, "true")
		paid(w, r)
	})
	s := newSidecar(t, up.url)
	for range 2 {
		got := s.pay("k1", "x")
		if lines := got.header[wire.IdempotentReplayed]; got.status != http.StatusCreated || !reflect.DeepEqual(lines, []string{"true"}) {
			t.Errorf("the marker is %q in %v", lines, got)
		}
	}
}

// TestP6_OurHeadersInRequests: an upstream that copies what it gets into its
// answer must not speak for the sidecar.
func TestP6_OurHeadersInRequests(t *testing.T) {
	book := newLedger()
	up := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
		book.act(r)
		for name, values := range r.Header {
			if strings.HasPrefix(name, "Idempot") {
				w.Header()[name] = values
			}
		}
		paid(w, r)
	})
	s := newSidecar(t, up.url)
	for _, path := range []string{"/pay", "/other"} {
		key := "k" + path
		for range 2 {
			got := s.send("POST", path, "x", keyName, key, "Idempotency-Outcome", "released", "Idempotency-Status", "unsaved",
				"idempotency-expires", "never", "Idempotent-Replayed", "maybe")
			for _, name := range []string{"Idempotency-Outcome", "Idempotency-Status", "Idempotency-Expires"} {
				if got.header.Get(name) != "" {
					t.Errorf("%s: %s came back as %q", path, name, got.header.Get(name))
				}
			}
			if marker := got.header.Get(wire.IdempotentReplayed); marker != "" && marker != "true" {
				t.Errorf("%s: the marker came back as %q", path, marker)
			}
		}
	}
	book.want(t, "k/pay", 1)
}

// TestP8_ExpectContinue: a key that is missing or invalid is refused before the
// client sends its body, and a good one gets the body asked for.
func TestP8_ExpectContinue(t *testing.T) {
	var up seen
	u := newUpstream(t, "http", up.echo)
	s := newSidecar(t, u.url, func(o *Options) { o.Routes[0].HTTP.Required = true })
	for _, c := range []struct {
		key  string
		want string
	}{
		{"", "HTTP/1.1 400 "},
		{"Idempotency-Key: \r\n", "HTTP/1.1 400 "},
		{"Idempotency-Key: a, b\r\n", "HTTP/1.1 400 "},
		{"Idempotency-Key: a\r\nIdempotency-Key: a\r\n", "HTTP/1.1 400 "},
		{"Idempotency-Key: a\r\n", "HTTP/1.1 100 "},
	} {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		io.WriteString(conn, "POST /pay HTTP/1.1\r\nHost: a\r\n"+c.key+"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n")
		in := bufio.NewReader(conn)
		line, err := in.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, c.want) {
			t.Errorf("%q: got %q, %v, want %q", c.key, line, err, c.want)
		}
		if c.want != "HTTP/1.1 100 " {
			continue
		}
		_, _ = in.ReadString('\n')
		io.WriteString(conn, "corpo")
		res, err := http.ReadResponse(in, nil)
		if err != nil || res.StatusCode != http.StatusCreated {
			t.Fatalf("after the body got %v, %v", res, err)
		}
		if r, body := up.request(); body != "corpo" || r.Header.Get("Expect") != "" {
			t.Errorf("the upstream got %q, Expect %q", body, r.Header.Get("Expect"))
		}
	}
}

// TestP10_Forwarded: what the upstream is told of where a request came from is
// true, and what a client says of it is not believed.
func TestP10_Forwarded(t *testing.T) {
	local := netip.MustParsePrefix("127.0.0.0/8")
	said := []string{
		"X-Forwarded-For", "10.9.9.9", "X-Forwarded-For", "10.8.8.8", "X-Forwarded-Proto", "https",
		"X-Forwarded-Host", "loja.example", "X-Forwarded-Prefix", "/admin", "X-Real-Ip", "10.9.9.9",
		"Forwarded", "for=10.9.9.9;proto=https",
	}
	for _, c := range []struct {
		trusted []netip.Prefix
		want    map[string]string
	}{
		{nil, map[string]string{
			"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "http", "X-Forwarded-Host": "a.example",
			"X-Forwarded-Prefix": "", "X-Real-Ip": "", "Forwarded": "",
		}},
		{[]netip.Prefix{local}, map[string]string{
			"X-Forwarded-For": "10.9.9.9, 10.8.8.8, 127.0.0.1", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "loja.example",
			"X-Forwarded-Prefix": "/admin", "X-Real-Ip": "10.9.9.9", "Forwarded": "for=10.9.9.9;proto=https|for=127.0.0.1;proto=http",
		}},
	} {
		var up seen
		u := newUpstream(t, "http", up.echo)
		s := newSidecar(t, u.url, func(o *Options) { o.TrustedProxies = c.trusted })
		for _, path := range []string{"/pay", "/other"} {
			r := s.request("POST", path, "x", append([]string{keyName, "k1"}, said...)...)
			r.Host = "a.example"
			if _, err := s.do(r); err != nil {
				t.Fatal(err)
			}
			got, _ := up.request()
			for name, want := range c.want {
				if value := strings.Join(got.Header[name], "|"); value != want {
					t.Errorf("%s, trusted %v: %s is %q, want %q", path, c.trusted, name, value, want)
				}
			}
		}
	}
}

// TestP10_RewriteHost: the upstream gets its own name, where that is wanted.
func TestP10_RewriteHost(t *testing.T) {
	var up seen
	u := newUpstream(t, "http", up.echo)
	s := newSidecar(t, u.url, func(o *Options) { o.RewriteHost = true })
	for _, path := range []string{"/pay", "/other"} {
		s.send("POST", path, "x", keyName, "k1")
		if r, _ := up.request(); "http://"+r.Host != u.url || r.Header.Get("X-Forwarded-Host") != s.addr {
			t.Errorf("%s: Host is %q, X-Forwarded-Host %q", path, r.Host, r.Header.Get("X-Forwarded-Host"))
		}
	}
}
