package proxy

import (
	"cmp"
	"net/http"
	"time"
)

// Limits bounds what a client or the upstream may make the sidecar wait for or
// hold (rule P10). They are on by default: the zero value of a field means the
// default named at it. A negative duration switches that limit off; a size or a
// number that is not positive means the default.
type Limits struct {
	// ReadHeader is how long a client may take to send a request's header.
	// Default 10 s: a header is a few packets, and a client that drips it holds
	// a goroutine and a socket.
	ReadHeader time.Duration
	// ReadBody is how long a client may pause within a request's body. It is
	// counted anew at each read, so a large upload is not cut off. Default 30 s,
	// which a phone in a tunnel still survives.
	ReadBody time.Duration
	// ClientIdle is how long a client's idle connection is kept. Default 75 s:
	// load balancers in front keep theirs for 60 s, and the side that sends
	// requests should be the one that closes first.
	ClientIdle time.Duration
	// MaxHeader bounds a request's header, in bytes. Default 64 KiB: cookies
	// and tokens fit, and 1,000 connections cost at most 64 MiB.
	MaxHeader int

	// Dial is how long a connection to the upstream may take. Default 5 s: the
	// upstream is next door, and nothing has been sent yet.
	Dial time.Duration
	// TLSHandshake is how long its TLS handshake may take. Default 5 s.
	TLSHandshake time.Duration
	// AnswerHeader is how long the upstream may take from the whole request to
	// the header of its answer. Default 2 min. Past it, a protected request is
	// *unknown*, so this is much longer than the 60 s after which balancers in
	// front give their client up: the operation goes on, and its answer is
	// kept for the retry. It should stay below the engine's MaxRun.
	AnswerHeader time.Duration
	// AnswerBody is how long the upstream may pause within an answer's body, or
	// in taking what is written to it. Default 60 s.
	AnswerBody time.Duration
	// StreamIdle takes the place of AnswerBody for what is meant to be silent at
	// times: server-sent events, gRPC, upgraded and tunnelled connections.
	// Default 1 h, so that a peer that vanished holds its sockets no longer.
	StreamIdle time.Duration
	// MaxAnswerHeader bounds the header of the upstream's answer, in bytes.
	// Default 256 KiB.
	MaxAnswerHeader int64
	// MaxIdle bounds the idle connections to the upstream. Default 512: one for
	// each request of a busy moment, and half of the usual 1,024 descriptors.
	MaxIdle int
}

// withDefaults returns the limits with every zero replaced by its default.
func (l Limits) withDefaults() Limits {
	l.ReadHeader = cmp.Or(l.ReadHeader, 10*time.Second)
	l.ReadBody = cmp.Or(l.ReadBody, 30*time.Second)
	l.ClientIdle = cmp.Or(l.ClientIdle, 75*time.Second)
	l.MaxHeader = cmp.Or(max(l.MaxHeader, 0), 64<<10)
	l.Dial = cmp.Or(l.Dial, 5*time.Second)
	l.TLSHandshake = cmp.Or(l.TLSHandshake, 5*time.Second)
	l.AnswerHeader = cmp.Or(l.AnswerHeader, 2*time.Minute)
	l.AnswerBody = cmp.Or(l.AnswerBody, time.Minute)
	l.StreamIdle = cmp.Or(l.StreamIdle, time.Hour)
	l.MaxAnswerHeader = cmp.Or(max(l.MaxAnswerHeader, 0), 256<<10)
	l.MaxIdle = cmp.Or(max(l.MaxIdle, 0), 512)
	return l
}

// Server returns an http.Server for the sidecar's clients with these limits,
// which speaks HTTP/1.1 and HTTP/2, the latter also without TLS (h2c by prior
// knowledge). It has no WriteTimeout: a stream may last, and what the client
// does not read costs no more than its socket.
func (l Limits) Server(h http.Handler) *http.Server {
	l = l.withDefaults()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           h,
		Protocols:         protocols,
		ReadHeaderTimeout: l.ReadHeader,
		IdleTimeout:       l.ClientIdle,
		MaxHeaderBytes:    l.MaxHeader,
	}
}
