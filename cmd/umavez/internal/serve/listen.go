package serve

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/umavez/umavez/proxy"
)

// maxStreams bounds the requests that one HTTP/2 connection runs at a time.
const maxStreams = 250

// newServer builds the server for clients, with the proxy's limits: HTTP/1.1,
// and HTTP/2 over TLS, or in clear text (h2c) where there is no TLS.
func newServer(l proxy.Limits, h http.Handler, tlsConfig *tls.Config, log *slog.Logger) *http.Server {
	s := l.Server(h)
	s.TLSConfig = tlsConfig
	s.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: maxStreams}
	s.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	return s
}

// Limits of the admin address: its answers are short and its clients few.
const (
	adminReadTimeout  = 5 * time.Second
	adminWriteTimeout = 30 * time.Second
	adminIdleTimeout  = 2 * time.Minute // longer than Prometheus's usual minute
	adminMaxHeader    = 8 << 10
)

func newAdminServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:        h,
		ReadTimeout:    adminReadTimeout,
		WriteTimeout:   adminWriteTimeout,
		IdleTimeout:    adminIdleTimeout,
		MaxHeaderBytes: adminMaxHeader,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

// tlsConfig reads the certificate, and the authorities of clients where the
// caller is known by certificate. nil: no TLS.
func (c Config) tlsConfig() (*tls.Config, error) {
	if c.TLSCert == "" {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
	if err != nil {
		return nil, usagef("--tls-cert %s, --tls-key %s: %w", c.TLSCert, c.TLSKey, err)
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}}
	if c.ClientCA == "" {
		return t, nil
	}
	pem, err := os.ReadFile(c.ClientCA)
	if err != nil {
		return nil, usagef("--client-ca %s: %w", c.ClientCA, err)
	}
	t.ClientCAs = x509.NewCertPool()
	if !t.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, usagef("--client-ca %s: holds no PEM certificate", c.ClientCA)
	}
	// A certificate that is shown must verify. One that is not shown is the
	// proxy's to refuse, on the routes that need a caller: health checks of a
	// load balancer on other routes have none.
	t.ClientAuth = tls.VerifyClientCertIfGiven
	return t, nil
}

// listen opens an address.
func listen(option, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		// The system's text repeats the address.
		if oe, ok := errors.AsType[*net.OpError](err); ok {
			err = oe.Err
		}
		return nil, fmt.Errorf("umavez: %s %s: %w", option, address, err)
	}
	return l, nil
}
