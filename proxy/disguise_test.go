package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/umavez/umavez/internal/wire"
)

// disguises are ways to write POST /pay that some server reads as that.
var disguises = []string{
	"POST //pay", "POST /./pay", "POST /x/../pay", "POST /pay/.", "POST /pay//", "POST ///pay/", "POST /pay/../pay",
	"POST /x/../../pay", "POST /x/%2e%2e/pay", "POST /x/%2E./pay", "POST /%2fpay", "POST /pay%2f", "POST /x%2f..%2fpay",
	"POST /x%2F%2E%2E%2Fpay", "POST /%252fpay", "POST /%2570ay", `POST /x\..\pay`, "POST /x%5c..%5cpay", "POST /%5cpay",
	"POST /pay;v=1", "POST /pay;jsessionid=1/", "POST /x;a/..;b/pay", "POST /pay%3bv=1", "post /pay", "Post /pay", "post //pay",
	"POST http://sidecar//pay", "POST /%70%61%79%2f%2f",
}

// TestP10_Disguises: none of them is a way around the protection.
func TestP10_Disguises(t *testing.T) {
	rs := table(t, false, "POST /pay", "PUT /cob/{id}", "POST /v1/{id}/refund")
	for _, line := range disguises {
		if e, disguised := rs.find(asked(t, line)); e != nil || !disguised {
			t.Errorf("%s: enrolled %v, disguised %v", line, e != nil, disguised)
		}
	}
	for _, line := range []string{
		"POST /x%2f..%2fv1/7/refund", "POST /v1/7//refund", "PUT /cob/7/../7", "PUT /%2e/cob/7",
	} {
		if e, disguised := rs.find(asked(t, line)); e != nil || !disguised {
			t.Errorf("%s: enrolled %v, disguised %v", line, e != nil, disguised)
		}
	}
	// What no server reads as one of them passes.
	for _, line := range []string{
		"GET //pay", "PUT /x/../pay", "POST //other", "POST /x/../y", "POST /pay2;v=1", "POST /pay/%2e%2e/other", "PUT /a%2fb",
		"POST /50%25", "POST /%zz"[:6], "OPTIONS /pay;v=1",
	} {
		if e, disguised := rs.find(asked(t, line)); e != nil || disguised {
			t.Errorf("%s: enrolled %v, disguised %v", line, e != nil, disguised)
		}
	}
	// A wildcard takes an escaped slash: that is the route's own request.
	if e, disguised := rs.find(asked(t, "PUT /cob/a%2Fb")); e == nil || disguised {
		t.Error("an escaped slash in a wildcard is not taken for its own")
	}
}

// TestP10_OtherRoute: a request of one route that can be read as one of another,
// stricter one is in disguise too.
func TestP10_OtherRoute(t *testing.T) {
	rs := table(t, false, "POST /open/{id}", "POST /strict")
	if _, disguised := rs.find(asked(t, "POST /open/..%2f..%2fstrict")); !disguised {
		t.Error("a request for /open/{id} that can be read as /strict passes as the former")
	}
	if e, disguised := rs.find(asked(t, "POST /open/50%25;x")); e == nil || disguised {
		t.Error("a request that can only be read as its own route is refused")
	}
}

// TestP10_MethodOverride: the header that names another method than the request's.
func TestP10_MethodOverride(t *testing.T) {
	rs := table(t, false, "PUT /cob/{id}")
	for _, c := range []struct {
		line, name, value string
		disguised         bool
	}{
		{"POST /cob/1", "X-HTTP-Method-Override", "PUT", true},
		{"POST /cob/1", "X-HTTP-Method", "put", true},
		{"POST /cob/1", "X-Method-Override", " PUT ", true},
		{"POST /cob/1", "X-HTTP-Method-Override", "PATCH", false},
		{"PUT /cob/1", "X-HTTP-Method-Override", "PUT", false},
		{"POST /other", "X-HTTP-Method-Override", "PUT", false},
	} {
		if _, disguised := rs.find(asked(t, c.line, c.name, c.value)); disguised != c.disguised {
			t.Errorf("%s with %s: %s: disguised %v", c.line, c.name, c.value, disguised)
		}
	}
}

// TestP10_DisguisesAreRefused: on the wire, with and without a key: 400, and the
// upstream sees nothing.
func TestP10_DisguisesAreRefused(t *testing.T) {
	var up seen
	u := newUpstream(t, "http", up.echo)
	s := newSidecar(t, u.url)
	for _, line := range disguises {
		for _, key := range []string{"", "Idempotency-Key: k1\r\n"} {
			conn, err := net.Dial("tcp", s.addr)
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(conn, line+" HTTP/1.1\r\nHost: sidecar\r\n"+key+"Content-Length: 0\r\nConnection: close\r\n\r\n")
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			conn.Close()
			if res.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), wire.CodeAmbiguousPath) {
				t.Errorf("%s: got %d %s", line, res.StatusCode, body)
			}
		}
	}
	if r, _ := up.request(); r != nil {
		t.Errorf("the upstream got %s %s", r.Method, r.RequestURI)
	}
}

// FuzzP10: whatever the path is, a request that a server may read as POST /pay
// is enrolled or refused, and never passes.
func FuzzP10(f *testing.F) {
	for _, line := range disguises {
		if _, target, _ := strings.Cut(line, " "); strings.HasPrefix(target, "/") {
			f.Add(target)
		}
	}
	rs := newRoutes(false)
	if err := fill(rs, "POST /pay"); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, target string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("POST " + target + " HTTP/1.1\r\nHost: a\r\n\r\n")))
		if err != nil || r.Method != "POST" {
			return
		}
		e, disguised := rs.find(r)
		// The readings of a server that cleans, and of one that decodes first.
		for _, reading := range []string{clean(r.URL.EscapedPath()), clean(r.URL.Path)} {
			if strings.TrimSuffix(reading, "/") == "/pay" && e == nil && !disguised {
				t.Errorf("%q passes and may be read as %q", target, reading)
			}
		}
	})
}
