package proxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/umavez/umavez/internal/wire"
	"github.com/umavez/umavez/umavezhttp"
)

// TestF2_Header: a header names the caller only when it comes from a trusted
// network, and once.
func TestF2_Header(t *testing.T) {
	source, err := FromHeader("x-user", []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from  string
		users []string
		why   string // it is refused; empty: it is not
	}{
		{"10.1.2.3:4567", []string{"ana"}, ""},
		{"[::ffff:10.1.2.3]:4567", []string{"ana"}, ""},
		{"[fd00::1]:4567", []string{"ana"}, ""},
		{"[fd00::1%eth0]:4567", []string{"ana"}, ""},
		{"10.1.2.3:4567", []string{"ana", "bia"}, "it has 2 fields X-User, want one"},
		{"10.1.2.3:4567", []string{""}, "X-User is empty"},
		{"10.1.2.3:4567", nil, "it has 0 fields X-User"},
		{"11.1.2.3:4567", []string{"ana"}, "it comes from 11.1.2.3:4567, which is in no trusted network"},
		{"[fe80::1]:4567", []string{"ana"}, "it comes from [fe80::1]:4567, which is in no trusted network"},
		{"@", []string{"ana"}, "it comes from @, which is in no trusted network"}, // a socket of the file system
		{"", []string{"ana"}, "it comes from , which is in no trusted network"},
	} {
		r := httptest.NewRequest("POST", "/pay", nil)
		r.RemoteAddr = c.from
		r.Header["X-User"] = c.users
		r.Header.Set("X-Forwarded-For", "10.1.2.3") // says the client
		got, err := source.Principal(r)
		if (err == nil) != (c.why == "") || err == nil && got != umavezhttp.PrincipalOf("header", "ana") {
			t.Errorf("%q from %s: %q, %v", c.users, c.from, got, err)
		}
		if err != nil && (!errors.Is(err, umavezhttp.ErrUnauthenticated) || !strings.Contains(err.Error(), c.why)) {
			t.Errorf("%q from %s: the error is %v", c.users, c.from, err)
		}
	}
	if _, err := FromHeader("X-User", nil); err == nil || !strings.Contains(err.Error(), "networks") {
		t.Errorf("without networks: %v", err)
	}
	if _, err := FromHeader("X User", []netip.Prefix{{}}); err == nil {
		t.Error("a name with a space was taken")
	}
}

// TestF2_HeaderSpoofed: a client that writes the header itself is nobody, and
// what it wrote does not reach the upstream either, which might believe it.
func TestF2_HeaderSpoofed(t *testing.T) {
	for _, c := range []struct {
		network string
		status  int
		user    string
	}{{"10.0.0.0/8", http.StatusUnauthorized, ""}, {"127.0.0.0/8", http.StatusCreated, "ana"}} {
		var up seen
		u := newUpstream(t, "http", up.echo)
		s := newSidecar(t, u.url, func(o *Options) {
			var err error
			if o.Principal, err = FromHeader("X-User", []netip.Prefix{netip.MustParsePrefix(c.network)}); err != nil {
				t.Fatal(err)
			}
		})
		got := s.pay("k1", "x", "X-User", "ana")
		if got.status != c.status || (got.code() == wire.CodeUnauthenticated) != (c.user == "") {
			t.Errorf("trusted %s: got %v", c.network, got)
		}
		for _, path := range []string{"/other", "/pay"} { // neither is protected
			s.send("POST", path, "x", "x-user", "ana")
			if r, _ := up.request(); r.Header.Get("X-User") != c.user {
				t.Errorf("trusted %s: %s went upstream from %q", c.network, path, r.Header.Get("X-User"))
			}
		}
	}
}

// TestF1_TwoCallers: equal keys of two callers are two keys.
func TestF1_TwoCallers(t *testing.T) {
	book := newLedger()
	up := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
		book.act(r)
		io.WriteString(w, "for "+r.Header.Get("X-User"))
	})
	s := newSidecar(t, up.url, func(o *Options) {
		o.Principal, _ = FromHeader("X-User", []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	})
	for range 2 {
		for _, user := range []string{"ana", "bia"} {
			if got := s.pay("k1", "x", "X-User", user); got.body != "for "+user {
				t.Errorf("%s got %v", user, got)
			}
		}
	}
	book.want(t, "k1", 2)
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	a := &authority{}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	a.key = newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *authority) sign(t *testing.T, subject pkix.Name, key *ecdsa.PrivateKey) tls.Certificate {
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: subject,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, DNSNames: []string{"sidecar"},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// whoami answers with the principal that a source finds, over TLS.
func whoami(t *testing.T, source Source, clients *authority, verify tls.ClientAuthType) func(tls.Certificate) string {
	mine := newAuthority(t, "servers")
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := source.Principal(r)
		if err != nil {
			who = "error: " + err.Error()
		}
		io.WriteString(w, who)
	}))
	server.TLS = &tls.Config{ClientAuth: verify, ClientCAs: x509.NewCertPool(), Certificates: []tls.Certificate{mine.sign(t, pkix.Name{}, newKey(t))}}
	server.TLS.ClientCAs.AddCert(clients.cert)
	server.Config.ErrorLog = slogLogger(discard)
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(mine.cert)
	return func(cert tls.Certificate) string {
		config := &tls.Config{RootCAs: roots, ServerName: "sidecar"}
		if cert.Certificate != nil {
			// Always, whatever authorities the server names.
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
		}
		transport := &http.Transport{TLSClientConfig: config}
		defer transport.CloseIdleConnections()
		res, err := (&http.Client{Transport: transport}).Get(server.URL)
		if err != nil {
			return "no handshake"
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		return string(body)
	}
}

// TestF2_MTLS: the caller is who the verified certificate names, by name or by key.
func TestF2_MTLS(t *testing.T) {
	clients, strangers := newAuthority(t, "clients"), newAuthority(t, "clients")
	loja := pkix.Name{CommonName: "loja; CN=outra", Organization: []string{"Loja, Ltda"}}
	key, renewed := newKey(t), newKey(t)
	nobody := "error: " + umavezhttp.ErrUnauthenticated.Error()

	ask := whoami(t, MTLS(CertificateName), clients, tls.VerifyClientCertIfGiven)
	first := ask(clients.sign(t, loja, key))
	if want := umavezhttp.PrincipalOf("mtls", `CN=loja\; CN=outra,O=Loja\, Ltda`, "CN=clients"); first != want {
		t.Errorf("the principal is %q, want %q", first, want)
	}
	if again := ask(clients.sign(t, loja, renewed)); again != first {
		t.Errorf("after the certificate was renewed it is %q", again)
	}
	if other := ask(clients.sign(t, pkix.Name{CommonName: "loja"}, key)); other == first {
		t.Error("two subjects are one caller")
	}
	for what, cert := range map[string]tls.Certificate{"no certificate": {}, "no subject": clients.sign(t, pkix.Name{}, key)} {
		if got := ask(cert); got != nobody {
			t.Errorf("%s: %q", what, got)
		}
	}
	if got := ask(strangers.sign(t, loja, key)); got != "no handshake" {
		t.Errorf("a certificate of another authority: %q", got)
	}
	// A server that asks for a certificate and does not verify it.
	if got := whoami(t, MTLS(CertificateName), clients, tls.RequireAnyClientCert)(strangers.sign(t, loja, key)); got != nobody {
		t.Errorf("a certificate that nobody verified is %q", got)
	}

	ask = whoami(t, MTLS(CertificateKey), clients, tls.RequireAndVerifyClientCert)
	first = ask(clients.sign(t, loja, key))
	if again := ask(clients.sign(t, pkix.Name{}, key)); again != first || !strings.HasPrefix(first, "4:spki,64:") {
		t.Errorf("one key is %q and %q", first, again)
	}
	if again := ask(clients.sign(t, loja, renewed)); again == first {
		t.Error("two keys are one caller")
	}
}

// TestF2_MTLSNamesOfOneKind: a subject with two names of a kind is not the one
// with the last of them.
func TestF2_MTLSNamesOfOneKind(t *testing.T) {
	clients := newAuthority(t, "clients")
	cn := []int{2, 5, 4, 3}
	ask := whoami(t, MTLS(CertificateName), clients, tls.RequireAndVerifyClientCert)
	two := ask(clients.sign(t, pkix.Name{ExtraNames: []pkix.AttributeTypeAndValue{{Type: cn, Value: "ana"}, {Type: cn, Value: "bia"}}}, newKey(t)))
	one := ask(clients.sign(t, pkix.Name{CommonName: "bia"}, newKey(t)))
	if two == one || !strings.Contains(two, "ana") {
		t.Errorf("two names are %q, one is %q", two, one)
	}
}

// asking is an authenticating service.
type asking struct {
	mu     sync.Mutex
	asked  []*http.Request
	answer http.HandlerFunc
}

func (a *asking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.asked = append(a.asked, r)
	answer := a.answer
	a.mu.Unlock()
	answer(w, r)
}

func (a *asking) set(h http.HandlerFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = h
}

func (a *asking) times() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.asked)
}

// newAsking starts a service and a sidecar that asks it.
func newAsking(t *testing.T, upstream string) (*asking, *sidecar) {
	a := &asking{}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	s := newSidecar(t, upstream, func(o *Options) {
		transport := &http.Transport{}
		t.Cleanup(transport.CloseIdleConnections)
		var err error
		o.Principal, err = AuthRequest(AuthOptions{URL: server.URL + "/verify", Header: "X-User", Timeout: 2 * time.Second, Transport: transport})
		if err != nil {
			t.Fatal(err)
		}
	})
	return a, s
}

func named(user string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-User", user) }
}

// TestP7_AuthRequest: the service is asked with the request's headers, each time
// anew, and its answer is the caller.
func TestP7_AuthRequest(t *testing.T) {
	book := newLedger()
	up := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
		book.act(r)
		paid(w, r)
	})
	a, s := newAsking(t, up.url)
	a.set(named("ana"))
	for range 2 {
		if got := s.pay("k1", "corpo", "Authorization", "Bearer t", "Cookie", "c=1", "X-User", "root", "X-Forwarded-For", "10.9.9.9"); got.status != http.StatusCreated {
			t.Errorf("got %v", got)
		}
	}
	if a.times() != 2 {
		t.Errorf("the service was asked %d times, want twice", a.times())
	}
	r := a.asked[0]
	for name, want := range map[string]string{
		"Authorization": "Bearer t", "Cookie": "c=1", "X-User": "", wire.IdempotencyKey: "", "Content-Length": "", "Content-Type": "",
		"X-Forwarded-Method": "POST", "X-Forwarded-Uri": "/pay", "X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": s.addr, "X-Forwarded-Proto": "http",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("the service was asked with %s: %q, want %q", name, got, want)
		}
	}
	if r.Method != "GET" || r.URL.Path != "/verify" || r.ContentLength != 0 {
		t.Errorf("the service was asked %s %s with %d bytes", r.Method, r.URL, r.ContentLength)
	}
	// Another caller with the same key, and no caller at all: not the answer of
	// the first one.
	a.set(named("bia"))
	if got := s.pay("k1", "corpo"); got.status != http.StatusCreated || got.replayed() {
		t.Errorf("another caller got %v", got)
	}
	book.want(t, "k1", 2)
	// Without a key there is nothing to ask.
	before := a.times()
	s.send("POST", "/pay", "corpo")
	s.send("POST", "/other", "corpo", keyName, "k1")
	if a.times() != before {
		t.Error("the service was asked about requests that are not protected")
	}
}

// TestP7_AuthRefusal: 401 and 403 go to the client as they are, also in place of
// a replay.
func TestP7_AuthRefusal(t *testing.T) {
	book := newLedger()
	up := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
		book.act(r)
		paid(w, r)
	})
	a, s := newAsking(t, up.url)
	a.set(named("ana"))
	s.pay("k1", "x")
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		a.set(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="loja"`)
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(status)
			io.WriteString(w, "locked out")
		})
		for _, key := range []string{"k1", "k2"} {
			got := s.pay(key, "x")
			if got.status != status || got.body != "locked out" || got.header.Get("WWW-Authenticate") != `Bearer realm="loja"` {
				t.Errorf("%d, %s: got %v", status, key, got)
			}
		}
	}
	book.want(t, "k1", 1)
	book.want(t, "k2", 0)
}

// TestP7_AuthDown: whatever else the service does, nothing is run.
func TestP7_AuthDown(t *testing.T) {
	book := newLedger()
	up := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
		book.act(r)
		paid(w, r)
	})
	a, s := newAsking(t, up.url)
	for what, answer := range map[string]http.HandlerFunc{
		"500": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"404": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-User", "ana")
			if r.URL.Path != "/login" {
				http.Redirect(w, r, "/login", http.StatusFound)
			}
		},
		"nobody":    func(w http.ResponseWriter, _ *http.Request) {},
		"two":       func(w http.ResponseWriter, _ *http.Request) { w.Header()["X-User"] = []string{"ana", "bia"} },
		"no answer": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"half an answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			w.WriteHeader(401)
		},
	} {
		a.set(answer)
		if got := s.pay("k1", "x"); got.status != http.StatusServiceUnavailable || got.code() != wire.CodeCallerUnavailable {
			t.Errorf("%s: got %v", what, got)
		}
	}
	s2 := newSidecar(t, up.url, func(o *Options) {
		o.Principal, _ = AuthRequest(AuthOptions{URL: "http://" + closedPort(t)})
	})
	got := s2.pay("k1", "x")
	if got.status != http.StatusServiceUnavailable || strings.Contains(got.body, "refused") {
		t.Errorf("nobody listens: got %v", got)
	}
	book.want(t, "k1", 0)
	for _, bad := range []AuthOptions{{}, {URL: "auth:4180"}, {URL: "http://auth", Header: "X User"}} {
		if _, err := AuthRequest(bad); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}

// TestF1_NoSource: who does not say whose keys they are gets no sidecar.
func TestF1_NoSource(t *testing.T) {
	_, err := New(newEngine(t), Options{Upstream: "http://localhost", HTTP: umavezhttp.Options{Namespace: "loja"}})
	if err == nil || !strings.Contains(err.Error(), "NoPrincipal") {
		t.Errorf("the error is %v", err)
	}
}
