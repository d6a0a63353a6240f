package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority issues certificates for one test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	dir  string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.key = newECKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

func newECKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// issue makes a certificate for a server at 127.0.0.1, or for a client.
func (a *authority) issue(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key := newECKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// files writes a certificate and its key, and returns the flags that use them.
func (a *authority) files(t *testing.T, name string) []string {
	t.Helper()
	c := a.issue(t, name)
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, key := filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+"-key.pem")
	writePEM(t, cert, "CERTIFICATE", c.Certificate[0])
	writePEM(t, key, "PRIVATE KEY", der)
	return []string{"--tls-cert", cert, "--tls-key", key}
}

func (a *authority) caFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(a.dir, "ca.pem")
	writePEM(t, file, "CERTIFICATE", a.cert.Raw)
	return file
}

func writePEM(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// client trusts the authority, speaks HTTP/2 or 1.1, and shows certs if it has any.
func (a *authority) client(t *testing.T, h2 bool, certs ...tls.Certificate) *http.Client {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: certs}, Protocols: new(http.Protocols)}
	tr.Protocols.SetHTTP2(h2)
	tr.Protocols.SetHTTP1(!h2)
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// protocols notes what the upstream was spoken to in.
func protocolUpstream(t *testing.T, h2c bool) (address string, seen chan string) {
	t.Helper()
	seen = make(chan string, 100)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Proto
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "ok")
	}))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(h2c)
	s.Config.Protocols.SetHTTP1(!h2c)
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), seen
}

// TestProtocols: HTTP/1.1 and HTTP/2 in, with TLS and without, and out. A retry
// in the other protocol gets the same answer.
func TestProtocols(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	h2c := &http.Transport{Protocols: new(http.Protocols)}
	h2c.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(h2c.CloseIdleConnections)
	h1 := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(h1.CloseIdleConnections)
	for _, c := range []struct {
		name          string
		tls           bool
		first, second *http.Client
		out, proto    string // to the upstream
	}{
		{"h1 and h2c to h1", false, h1, &http.Client{Transport: h2c}, "http://", "HTTP/1.1"},
		{"h2c and h1 to h2c", false, &http.Client{Transport: h2c}, h1, "h2c://", "HTTP/2.0"},
		{"TLS, h1 and h2 to h2c", true, ca.client(t, false), ca.client(t, true), "h2c://", "HTTP/2.0"},
		{"TLS, h2 and h1 to h1", true, ca.client(t, true), ca.client(t, false), "http://", "HTTP/1.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			up, seen := protocolUpstream(t, c.out == "h2c://")
			args := []string{"--upstream", c.out + up, "--route", "POST /a", "--principal", "none", "--store", "memory:"}
			if c.tls {
				args = append(args, ca.files(t, "server")...)
			}
			p := start(t, args...)
			if got := strings.HasPrefix(p.URL, "https://"); got != c.tls {
				t.Fatalf("the ready line says %s; TLS is %v", p.URL, c.tls)
			}
			first, err := post(c.first, p.URL+"/a", "k", `1`)
			if err != nil || first.status != http.StatusCreated || first.replayed() {
				t.Fatalf("first: %+v, %v", first, err)
			}
			second, err := post(c.second, p.URL+"/a", "k", `1`)
			if err != nil || second.status != http.StatusCreated || !second.replayed() || second.body != first.body {
				t.Errorf("second: %+v, %v", second, err)
			}
			if n := len(seen); n != 1 {
				t.Fatalf("%d requests upstream, want 1", n)
			}
			if proto := <-seen; proto != c.proto {
				t.Errorf("upstream was spoken to in %s, want %s", proto, c.proto)
			}
		})
	}
}

// TestPlainHTTPIsRefusedWhereTLSIs: no request is served in clear text there.
func TestPlainHTTPIsRefusedWhereTLSIs(t *testing.T) {
	b, ca := newBank(t, false), newAuthority(t)
	p := start(t, append(protect(b, "memory:"), ca.files(t, "server")...)...)
	a, err := post(http.DefaultClient, strings.Replace(p.URL, "https:", "http:", 1)+"/pagamentos", "k", `1`)
	if err == nil && a.status != http.StatusBadRequest || len(b.charges) != 0 {
		t.Errorf("plain HTTP: %+v, %v; %d charges", a, err, len(b.charges))
	}
}
