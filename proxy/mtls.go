package proxy

import (
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"net/http"

	"github.com/umavez/umavez/umavezhttp"
)

// CertificatePart says what of a client certificate is the caller.
type CertificatePart uint8

const (
	// CertificateName is subject and issuer: the same after the certificate was
	// renewed. A certificate without a subject is refused, since all of them
	// would be one caller.
	CertificateName CertificatePart = iota
	// CertificateKey is the SHA-256 of the public key. It is another caller
	// once the key is changed, also when that happens between two attempts.
	CertificateKey
)

// MTLS returns the [Source] that goes by the client's certificate. Only one that
// the TLS server has verified against its own authorities counts
// (tls.RequireAndVerifyClientCert or tls.VerifyClientCertIfGiven); one that was
// merely shown does not, and a proxy in front that ends TLS leaves none.
func MTLS(part CertificatePart) Source { return mtls{part} }

type mtls struct{ part CertificatePart }

func (s mtls) Recipe() string {
	if s.part == CertificateKey {
		return "mtls:key"
	}
	return "mtls"
}

func (s mtls) Principal(r *http.Request) (string, error) {
	// PeerCertificates is what the client showed. VerifiedChains is empty unless
	// the server verified it.
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || len(r.TLS.VerifiedChains[0]) == 0 {
		return "", umavezhttp.ErrUnauthenticated
	}
	cert := r.TLS.VerifiedChains[0][0]
	if s.part == CertificateKey {
		sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
		return umavezhttp.PrincipalOf("spki", hex.EncodeToString(sum[:])), nil
	}
	subject, issuer, ok := names(cert)
	if !ok {
		return "", umavezhttp.ErrUnauthenticated
	}
	return umavezhttp.PrincipalOf("mtls", subject, issuer), nil
}

// names returns subject and issuer as text. They are read from the certificate's
// own bytes: cert.Subject keeps only the last of two names of the same kind.
func names(cert *x509.Certificate) (subject, issuer string, ok bool) {
	subject, ok1 := distinguishedName(cert.RawSubject)
	issuer, ok2 := distinguishedName(cert.RawIssuer)
	return subject, issuer, ok1 && ok2 && subject != ""
}

func distinguishedName(der []byte) (string, bool) {
	var name pkix.RDNSequence
	if rest, err := asn1.Unmarshal(der, &name); err != nil || len(rest) > 0 {
		return "", false
	}
	return name.String(), true
}
