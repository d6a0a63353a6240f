package umavezhttp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// peculiar are handlers that use a ResponseWriter in every way that net/http
// has a rule for.
var peculiar = map[string]http.HandlerFunc{
	"nothing":      func(http.ResponseWriter, *http.Request) {},
	"status only":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202) },
	"no content":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) },
	"empty write":  func(w http.ResponseWriter, _ *http.Request) { w.Write(nil) },
	"sniffed text": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "plain words") },
	"sniffed html": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html><body>x") },
	"sniffed in pieces": func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "<ht")
		io.WriteString(w, "ml><body>x")
	},
	"sniffed, flushed": func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "<ht")
		flush(w)
		io.WriteString(w, "ml>")
	},
	"flushed first": func(w http.ResponseWriter, _ *http.Request) { flush(w); io.WriteString(w, "<html>") },
	"sniffing suppressed": func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		io.WriteString(w, "<html>")
	},
	"encoded, untyped": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "x")
		io.WriteString(w, "<html>")
	},
	"large": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("0123456789", 10_000)) },
	"many pieces": func(w http.ResponseWriter, _ *http.Request) {
		for i := range 3000 {
			fmt.Fprintf(w, "%d,", i)
		}
	},
	"declared length": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "4")
		io.WriteString(w, "body")
	},
	"declared too short": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "4")
		io.WriteString(w, "body")
		if _, err := io.WriteString(w, "more"); !errors.Is(err, http.ErrContentLength) {
			panic(err)
		}
	},
	"declared nonsense": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "four")
		io.WriteString(w, "body")
	},
	"superfluous header": func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(201)
		w.WriteHeader(500)
		io.WriteString(w, "x")
	},
	"header after the write": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Early", "1")
		w.Header().Set("X-Changed", "before")
		io.WriteString(w, "x")
		w.Header().Set("X-Late", "1")
		w.Header().Set("X-Changed", "after")
		w.Header().Add("X-Early", "2")
	},
	"body on 204": func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(204)
		if _, err := w.Write([]byte("x")); !errors.Is(err, http.ErrBodyNotAllowed) {
			panic(err)
		}
	},
	"several values": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("X-Many", "1")
		w.Header().Add("X-Many", "2, 3")
		w.Header()["x-odd"] = []string{"case"}
	},
	"trailers": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		io.WriteString(w, "body")
		w.Header().Set("X-Sum", "1")
	},
	"trailers, flushed": func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "body")
		flush(w)
		w.Header().Set(http.TrailerPrefix+"X-Sum", "1")
	},
	"read from a file": func(w http.ResponseWriter, r *http.Request) {
		f, err := os.Open(r.Header.Get("X-File"))
		if err != nil {
			panic(err)
		}
		defer f.Close()
		_, _ = io.Copy(w, f) // what did not go out is seen by the client
	},
	"redirect":  func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/there", http.StatusSeeOther) },
	"not found": http.NotFound,
	"panics": func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "x")
		panic(http.ErrAbortHandler)
	},
	"invalid status": func(w http.ResponseWriter, _ *http.Request) {
		defer func() {
			if got := fmt.Sprint(recover()); got != "invalid WriteHeader code 99" {
				panic(got)
			}
			w.WriteHeader(201)
		}()
		w.WriteHeader(99)
	},
	"body too short": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "9")
		io.WriteString(w, "x")
	},
}

func flush(w http.ResponseWriter) { w.(http.Flusher).Flush() }

// TestRecorderIsLikeNetHTTP: over both protocols, a protected handler's answer
// is on the wire what the bare handler's is, and its replay is the same again.
func TestRecorderIsLikeNetHTTP(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, bytes.Repeat([]byte("line\n"), 50_000), 0o600); err != nil {
		t.Fatal(err)
	}
	overBoth(t, func(t *testing.T, h2 bool) {
		for name, handler := range peculiar {
			if h2 && name == "declared too short" {
				continue // bare HTTP/2 resets such a stream; here the first four bytes are an answer
			}
			t.Run(name, func(t *testing.T) {
				log := slog.NewLogLogger(slog.NewTextHandler(io.Discard, nil), slog.LevelError)
				ask := func(h http.Handler) (first, again reply, firstErr error) {
					server := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						r.Header.Set("X-File", file)
						h.ServeHTTP(w, r)
					}), h2)
					server.Config.ErrorLog = log
					first, firstErr = fetchOnly(t, server)
					if firstErr == nil {
						again = mustFetch(t, server, "k")
					}
					return first, again, firstErr
				}
				want, _, wantErr := ask(handler)
				first, again, err := ask(setup{}.opaque(t, handler))
				if (err == nil) != (wantErr == nil) {
					t.Fatalf("error %v, bare %v", err, wantErr)
				}
				if err != nil {
					return
				}
				if first.header.Get("Idempotency-Key") != "k" {
					t.Errorf("no echo: %v", first)
				}
				withoutFraming(again, first).mustEqual(t, withoutFraming(first, again))
				first.header.Del("Idempotency-Key")
				withoutFraming(first, want).mustEqual(t, withoutFraming(want, first))
			})
		}
	})
}

// fetchOnly is fetch with a client that follows no redirects.
func fetchOnly(t *testing.T, server *httptest.Server) (reply, error) {
	server.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return fetch(t, server, "k")
}

// withoutFraming drops the Content-Length of r if the other answer was chunked:
// we know the length of what net/http would have begun to send.
func withoutFraming(r, other reply) reply {
	if other.header.Get("Content-Length") == "" {
		r.header = r.header.Clone()
		r.header.Del("Content-Length")
	}
	return r
}

// capable are ResponseWriters with every combination of the optional methods.
type (
	plain    struct{ http.ResponseWriter }
	flushing struct{ http.ResponseWriter }
	pushing  struct{ http.ResponseWriter }
)

func (flushing) Flush() {}

func (pushing) Push(string, *http.PushOptions) error { return nil }

// can lists what a ResponseWriter offers to a type test.
func can(w http.ResponseWriter) string {
	var can []string
	add := func(name string, ok bool) {
		if ok {
			can = append(can, name)
		}
	}
	_, ok := w.(http.Flusher)
	add("Flusher", ok)
	_, ok = w.(http.Hijacker)
	add("Hijacker", ok)
	_, ok = w.(io.ReaderFrom)
	add("ReaderFrom", ok)
	_, ok = w.(http.Pusher)
	add("Pusher", ok)
	_, ok = w.(interface{ CloseNotify() <-chan bool })
	add("CloseNotifier", ok)
	return strings.Join(can, " ")
}

// TestFaces: the recorder offers what is beneath it, no less and no more.
func TestFaces(t *testing.T) {
	var got string
	h := setup{}.opaque(t, func(w http.ResponseWriter, r *http.Request) { got = can(w) })
	recorder := func() *httptest.ResponseRecorder { return httptest.NewRecorder() }
	for i, w := range []http.ResponseWriter{
		recorder(), plain{recorder()}, flushing{recorder()}, pushing{recorder()}, readerFromRecorder{recorder()},
	} {
		h.ServeHTTP(w, newRequest(fmt.Sprint("k", i)))
		if want := can(w); got != want {
			t.Errorf("%T: %q, want %q", w, got, want)
		}
	}
	overBoth(t, func(t *testing.T, h2 bool) {
		var bare, protected string
		h := setup{}.opaque(t, func(w http.ResponseWriter, r *http.Request) { protected = can(w) })
		server := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			bare = can(w)
			h.ServeHTTP(w, r)
		}), h2)
		if mustFetch(t, server, "k"); protected != bare || bare == "" {
			t.Errorf("%q, want %q", protected, bare)
		}
	})
}

// TestFormFiles: the files of a form that the handler parsed are removed, as the
// server does for its own request.
func TestFormFiles(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var parsed string
	server := listen(t, setup{}.opaque(t, func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1); err != nil {
			t.Error(err)
			return
		}
		f, err := r.MultipartForm.File["f"][0].Open()
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		if file, ok := f.(*os.File); ok {
			parsed = file.Name()
		}
	}), false)
	body := "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x\"\r\n\r\n" + strings.Repeat("x", 100_000) + "\r\n--b--\r\n"
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", "k")
	r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	resp, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	replyOf(resp)
	server.Close() // waits for the request to be finished
	if parsed == "" {
		t.Fatal("the form has no file on disk")
	}
	if _, err := os.Stat(parsed); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left behind: %v", filepath.Base(parsed), err)
	}
}

// TestContextValues: the operation's context has what its caller's had.
func TestContextValues(t *testing.T) {
	type key struct{}
	h := setup{}.opaque(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Value(key{}) != "v" || r.PathValue("id") != "7" || r.Pattern != "POST /p/{id}" {
			t.Errorf("value %v, id %q, pattern %q", r.Context().Value(key{}), r.PathValue("id"), r.Pattern)
		}
	})
	mux := http.NewServeMux()
	mux.Handle("POST /p/{id}", h)
	r := newRequest("k")
	r.URL.Path = "/p/7"
	mux.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithValue(t.Context(), key{}, "v")))
}

// TestConcurrentWriters: a handler's goroutines may write at the same time; each
// piece stays whole.
func TestConcurrentWriters(t *testing.T) {
	h := setup{}.opaque(t, func(w http.ResponseWriter, r *http.Request) {
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				for range 50 {
					w.Write(bytes.Repeat([]byte{byte('a' + i)}, 100))
				}
			})
		}
		group.Wait()
	})
	first := post(h, "k")
	for i := 0; i < len(first.body); i += 100 {
		if strings.Trim(first.body[i:i+100], first.body[i:i+1]) != "" {
			t.Fatalf("a torn piece: %q", first.body[i:i+100])
		}
	}
	post(h, "k").mustEqual(t, first)
}
