package umavezhttp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/umavez/umavez/internal/wire"
)

const bodyLimit = 1 << 20

func TestF9_BodyOverTheCap(t *testing.T) {
	for _, tc := range []struct {
		name   string
		size   int
		length int64
		ok     bool
	}{
		{"at the cap", 1000, 1000, true},
		{"at the cap, chunked", 1000, -1, true},
		{"over the cap", 1001, 1001, false},
		{"over the cap, chunked", 1001, -1, false},
		{"far over the cap, chunked", 1 << 20, -1, false},
		{"over the cap, announced as less", 1001, 10, false},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", io.NopCloser(strings.NewReader(strings.Repeat("x", tc.size))))
		r.ContentLength = tc.length
		body, err := readBody(r, 1000)
		if tc.ok {
			if err != nil || len(body) != tc.size || r.ContentLength != tc.length {
				t.Errorf("%s: %d bytes, length %d, %v", tc.name, len(body), r.ContentLength, err)
			}
			continue
		}
		p := bodyProblem(err)
		if body != nil || p.Status != http.StatusRequestEntityTooLarge || p.Code != wire.CodeRequestTooLarge {
			t.Errorf("%s: %d bytes, %d %s, %v", tc.name, len(body), p.Status, p.Code, err)
		}
		if told := p.detail(english); !strings.Contains(told, "at most 1000 bytes") {
			t.Errorf("%s: the client is told: %s", tc.name, told)
		}
	}
}

// TestF9_NothingIsReadOfWhatIsAnnouncedTooLarge: a client that waits for
// 100-continue has sent nothing, and is told so before it does.
func TestF9_NothingIsReadOfWhatIsAnnouncedTooLarge(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := readBody(r, 1000); err != nil {
			w.WriteHeader(bodyProblem(err).Status)
		}
	}))
	t.Cleanup(srv.Close) // after the connections below are closed
	conn := dial(t, srv)
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n")
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, " 413 ") {
		t.Errorf("the first line is %q, %v", line, err)
	}
}

func TestF9_OuterLimitCounts(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("0123456789"))
	r.Body = http.MaxBytesReader(nil, r.Body, 5)
	_, err := readBody(r, bodyLimit)
	if p := bodyProblem(err); p.Code != wire.CodeRequestTooLarge || p.limit != 5 {
		t.Errorf("a body that an outer handler limits: %s, limit %d, %v", p.Code, p.limit, err)
	}
}

func dial(t *testing.T, srv *httptest.Server) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}

// TestBodyThatBreaksOff: whatever way a client has of not sending its body whole,
// it is an error, so that nothing is claimed.
func TestBodyThatBreaksOff(t *testing.T) {
	read := make(chan error, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := readBody(r, bodyLimit)
		read <- err
	}))
	t.Cleanup(srv.Close) // after the connections below are closed
	for name, sent := range map[string]string{
		"shorter than announced":        "Content-Length: 10\r\n\r\n12345",
		"nothing of what was announced": "Content-Length: 10\r\n\r\n",
		"chunked, within a chunk":       "Transfer-Encoding: chunked\r\n\r\n5\r\n123",
		"chunked, without its end":      "Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n",
		"chunked, malformed":            "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
	} {
		conn := dial(t, srv)
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\n%s", sent)
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		err := <-read
		if _, ok := errors.AsType[*bodyBroken](err); !ok || bodyProblem(err).Code != wire.CodeRequestIncomplete {
			t.Errorf("%s: %v, %s", name, err, bodyProblem(err).Code)
		}
	}
}

// TestHandlerGetsTheSameBody, over both protocols' ways of framing and in pieces
// of any size.
func TestHandlerGetsTheSameBody(t *testing.T) {
	for _, size := range []int{0, 1, 14, firstRead - 1, firstRead, firstRead + 1, 3 * firstRead, mostPooled + 1, 300_000, bodyLimit} {
		want := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
		for _, length := range []int64{int64(size), -1} {
			for name, src := range map[string]io.Reader{
				"whole":        bytes.NewReader(want),
				"halves":       iotest.HalfReader(bytes.NewReader(want)),
				"end with eof": iotest.DataErrReader(bytes.NewReader(want)),
			} {
				r := httptest.NewRequest(http.MethodPost, "/", io.NopCloser(src))
				r.ContentLength = length
				r.GetBody = func() (io.ReadCloser, error) { return nil, errors.New("never called") }
				body, err := readBody(r, bodyLimit)
				if err != nil || !bytes.Equal(body, want) {
					t.Fatalf("%s, %d bytes: read %d, %v", name, size, len(body), err)
				}
				var piecemeal io.Reader = r.Body
				if size < 2*firstRead { // the large ones would take too long
					piecemeal = iotest.OneByteReader(r.Body)
				}
				got, err := io.ReadAll(piecemeal)
				if err != nil || !bytes.Equal(got, want) || r.ContentLength != length || r.GetBody != nil {
					t.Fatalf("%s, %d bytes: the handler read %d, length %d, %v", name, size, len(got), r.ContentLength, err)
				}
				freeBody(r, true)
			}
		}
	}
}

func TestNoBody(t *testing.T) {
	for _, none := range []io.ReadCloser{nil, http.NoBody} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Body = none
		if body, err := readBody(r, bodyLimit); body != nil || err != nil || r.Body != none {
			t.Errorf("readBody of %v: %q, %v, %v", none, body, err, r.Body)
		}
		freeBody(r, true)
	}
}

type closeCounter struct {
	io.Reader
	closed int
}

func (c *closeCounter) Close() error { c.closed++; return nil }

func TestBodyIsClosedOnce(t *testing.T) {
	from := &closeCounter{Reader: strings.NewReader("corpo")}
	r := httptest.NewRequest(http.MethodPost, "/", from)
	if _, err := readBody(r, bodyLimit); err != nil {
		t.Fatal(err)
	}
	body := r.Body
	for range 2 {
		if err := body.Close(); err != nil {
			t.Error(err)
		}
	}
	if from.closed != 1 {
		t.Errorf("what the body was read from was closed %d times", from.closed)
	}
	if n, err := body.Read(make([]byte, 1)); n != 0 || !errors.Is(err, http.ErrBodyReadAfterClose) {
		t.Errorf("after Close: %d, %v", n, err)
	}
	freeBody(r, true)
}

// TestLeakedBodyReadsNobodyElses: a goroutine that outlives its handler keeps
// reading while the memory serves other requests. It may get its own bytes, or
// an error, and nothing else.
func TestLeakedBodyReadsNobodyElses(t *testing.T) {
	var leaked sync.WaitGroup
	for i := range 200 {
		mine := byte('A' + i%26)
		r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(bytes.Repeat([]byte{mine}, 1000)))
		if _, err := readBody(r, bodyLimit); err != nil {
			t.Fatal(err)
		}
		body := r.Body
		leaked.Go(func() {
			var b [1]byte
			for {
				n, err := body.Read(b[:])
				if n == 1 && b[0] != mine {
					t.Errorf("the reader of %q got %q", mine, b[0])
					return
				}
				if err != nil {
					return
				}
			}
		})
		freeBody(r, true)
	}
	leaked.Wait()
}

// TestBodyAllocates: a replay, which runs no handler, costs nothing, and a first
// execution costs one object. (With the race detector on, a sync.Pool drops a
// part of what it is given; the average is rounded down.)
func TestBodyAllocates(t *testing.T) {
	src := strings.NewReader("")
	from := io.NopCloser(src)
	for handed, want := range map[bool]float64{false: 0, true: 1} {
		r := httptest.NewRequest(http.MethodPost, "/", from)
		n := testing.AllocsPerRun(1000, func() {
			src.Reset(`{"valor": 100}`)
			r.Body = from
			if _, err := readBody(r, bodyLimit); err != nil {
				t.Fatal(err)
			}
			freeBody(r, handed)
		})
		if n > want {
			t.Errorf("handed to a handler %v: %v allocations, want %v", handed, n, want)
		}
	}
}

// TestF10_BodyThatSomebodyOutsideHasRead: two payments would look the same, so
// that one of them would get the other one's answer.
func TestF10_BodyThatSomebodyOutsideHasRead(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("bytes"))
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		t.Fatal(err)
	}
	_, err := readBody(r, bodyLimit)
	if !errors.Is(err, errBodyTaken) || bodyProblem(err).Code != wire.CodeRequestIncomplete {
		t.Errorf("%v: %+v", err, bodyProblem(err))
	}
}
