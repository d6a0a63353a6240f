package umavezhttp

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// A handler asks its ResponseWriter what else it can do by a type test, so the
// recorder must answer as the client's ResponseWriter would: hiding Flusher
// breaks streams, and offering Hijacker where there is none breaks those who
// test for it. Hence a type for every combination of the five interfaces that
// net/http's writers have. Each type adds one method to a smaller one and holds
// a pointer only, so that making one costs nothing.
//
// What [http.ResponseController] does goes by Unwrap; see recorder_unwrap.go.

// closeNotifier is http.CloseNotifier, which is deprecated, and which some
// frameworks still call without looking.
type closeNotifier interface{ CloseNotify() <-chan bool }

// face returns w with exactly those methods that under has, too.
func (w *recorder) face(under http.ResponseWriter) http.ResponseWriter {
	var has int
	if _, ok := under.(http.Flusher); ok {
		has |= 1
	}
	if _, ok := under.(http.Hijacker); ok {
		has |= 2
	}
	if _, ok := under.(io.ReaderFrom); ok {
		has |= 4
	}
	if _, ok := under.(http.Pusher); ok {
		has |= 8
	}
	if _, ok := under.(closeNotifier); ok {
		has |= 16
	}
	return faces[has](w)
}

// The letters are those of Flusher, Hijacker, ReaderFrom, Pusher, CloseNotifier.
type (
	faceF     struct{ *recorder }
	faceH     struct{ *recorder }
	faceFH    struct{ faceF }
	faceR     struct{ *recorder }
	faceFR    struct{ faceF }
	faceHR    struct{ faceH }
	faceFHR   struct{ faceFH }
	faceP     struct{ *recorder }
	faceFP    struct{ faceF }
	faceHP    struct{ faceH }
	faceFHP   struct{ faceFH }
	faceRP    struct{ faceR }
	faceFRP   struct{ faceFR }
	faceHRP   struct{ faceHR }
	faceFHRP  struct{ faceFHR }
	faceC     struct{ *recorder }
	faceFC    struct{ faceF }
	faceHC    struct{ faceH }
	faceFHC   struct{ faceFH }
	faceRC    struct{ faceR }
	faceFRC   struct{ faceFR }
	faceHRC   struct{ faceHR }
	faceFHRC  struct{ faceFHR }
	facePC    struct{ faceP }
	faceFPC   struct{ faceFP }
	faceHPC   struct{ faceHP }
	faceFHPC  struct{ faceFHP }
	faceRPC   struct{ faceRP }
	faceFRPC  struct{ faceFRP }
	faceHRPC  struct{ faceHRP }
	faceFHRPC struct{ faceFHRP }
)

var faces = [32]func(*recorder) http.ResponseWriter{
	func(w *recorder) http.ResponseWriter { return w },
	func(w *recorder) http.ResponseWriter { return faceF{w} },
	func(w *recorder) http.ResponseWriter { return faceH{w} },
	func(w *recorder) http.ResponseWriter { return faceFH{faceF{w}} },
	func(w *recorder) http.ResponseWriter { return faceR{w} },
	func(w *recorder) http.ResponseWriter { return faceFR{faceF{w}} },
	func(w *recorder) http.ResponseWriter { return faceHR{faceH{w}} },
	func(w *recorder) http.ResponseWriter { return faceFHR{faceFH{faceF{w}}} },
	func(w *recorder) http.ResponseWriter { return faceP{w} },
	func(w *recorder) http.ResponseWriter { return faceFP{faceF{w}} },
	func(w *recorder) http.ResponseWriter { return faceHP{faceH{w}} },
	func(w *recorder) http.ResponseWriter { return faceFHP{faceFH{faceF{w}}} },
	func(w *recorder) http.ResponseWriter { return faceRP{faceR{w}} },
	func(w *recorder) http.ResponseWriter { return faceFRP{faceFR{faceF{w}}} },
	func(w *recorder) http.ResponseWriter { return faceHRP{faceHR{faceH{w}}} },
	func(w *recorder) http.ResponseWriter { return faceFHRP{faceFHR{faceFH{faceF{w}}}} },
	func(w *recorder) http.ResponseWriter { return faceC{w} },
	func(w *recorder) http.ResponseWriter { return faceFC{faceF{w}} },
	func(w *recorder) http.ResponseWriter { return faceHC{faceH{w}} },
	func(w *recorder) http.ResponseWriter { return faceFHC{faceFH{faceF{w}}} },
	func(w *recorder) http.ResponseWriter { return faceRC{faceR{w}} },
	func(w *recorder) http.ResponseWriter { return faceFRC{faceFR{faceF{w}}} },
	func(w *recorder) http.ResponseWriter { return faceHRC{faceHR{faceH{w}}} },
	func(w *recorder) http.ResponseWriter { return faceFHRC{faceFHR{faceFH{faceF{w}}}} },
	func(w *recorder) http.ResponseWriter { return facePC{faceP{w}} },
	func(w *recorder) http.ResponseWriter { return faceFPC{faceFP{faceF{w}}} },
	func(w *recorder) http.ResponseWriter { return faceHPC{faceHP{faceH{w}}} },
	func(w *recorder) http.ResponseWriter { return faceFHPC{faceFHP{faceFH{faceF{w}}}} },
	func(w *recorder) http.ResponseWriter { return faceRPC{faceRP{faceR{w}}} },
	func(w *recorder) http.ResponseWriter { return faceFRPC{faceFRP{faceFR{faceF{w}}}} },
	func(w *recorder) http.ResponseWriter { return faceHRPC{faceHRP{faceHR{faceH{w}}}} },
	func(w *recorder) http.ResponseWriter { return faceFHRPC{faceFHRP{faceFHR{faceFH{faceF{w}}}}} },
}

func (w faceF) Flush()            { _ = w.flush() } // Flush has no way to tell
func (w faceF) FlushError() error { return w.flush() }

func (w faceH) Hijack() (net.Conn, *bufio.ReadWriter, error)  { return w.hijack() }
func (w faceFH) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.hijack() }

func (w faceR) ReadFrom(src io.Reader) (int64, error)   { return w.readFrom(src) }
func (w faceFR) ReadFrom(src io.Reader) (int64, error)  { return w.readFrom(src) }
func (w faceHR) ReadFrom(src io.Reader) (int64, error)  { return w.readFrom(src) }
func (w faceFHR) ReadFrom(src io.Reader) (int64, error) { return w.readFrom(src) }

func (w faceP) Push(target string, o *http.PushOptions) error    { return w.push(target, o) }
func (w faceFP) Push(target string, o *http.PushOptions) error   { return w.push(target, o) }
func (w faceHP) Push(target string, o *http.PushOptions) error   { return w.push(target, o) }
func (w faceFHP) Push(target string, o *http.PushOptions) error  { return w.push(target, o) }
func (w faceRP) Push(target string, o *http.PushOptions) error   { return w.push(target, o) }
func (w faceFRP) Push(target string, o *http.PushOptions) error  { return w.push(target, o) }
func (w faceHRP) Push(target string, o *http.PushOptions) error  { return w.push(target, o) }
func (w faceFHRP) Push(target string, o *http.PushOptions) error { return w.push(target, o) }

func (w faceC) CloseNotify() <-chan bool     { return w.closeNotify() }
func (w faceFC) CloseNotify() <-chan bool    { return w.closeNotify() }
func (w faceHC) CloseNotify() <-chan bool    { return w.closeNotify() }
func (w faceFHC) CloseNotify() <-chan bool   { return w.closeNotify() }
func (w faceRC) CloseNotify() <-chan bool    { return w.closeNotify() }
func (w faceFRC) CloseNotify() <-chan bool   { return w.closeNotify() }
func (w faceHRC) CloseNotify() <-chan bool   { return w.closeNotify() }
func (w faceFHRC) CloseNotify() <-chan bool  { return w.closeNotify() }
func (w facePC) CloseNotify() <-chan bool    { return w.closeNotify() }
func (w faceFPC) CloseNotify() <-chan bool   { return w.closeNotify() }
func (w faceHPC) CloseNotify() <-chan bool   { return w.closeNotify() }
func (w faceFHPC) CloseNotify() <-chan bool  { return w.closeNotify() }
func (w faceRPC) CloseNotify() <-chan bool   { return w.closeNotify() }
func (w faceFRPC) CloseNotify() <-chan bool  { return w.closeNotify() }
func (w faceHRPC) CloseNotify() <-chan bool  { return w.closeNotify() }
func (w faceFHRPC) CloseNotify() <-chan bool { return w.closeNotify() }
