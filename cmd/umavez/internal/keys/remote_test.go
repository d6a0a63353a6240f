package keys

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
)

func TestAdminAddresses(t *testing.T) {
	for _, address := range []string{"", "127.0.0.1:9091", "ftp://h", "http://", "/x", "http://u:s3cret@h", "http://h/?a=b", "http://h/#a", "http://h\x7f"} {
		if _, err := NewRemote(address, goodToken); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v", address, err)
		} else {
			refused(t, address, err, CodeUsage, "--admin ")
		}
	}
	for _, address := range []string{"http://127.0.0.1:9091", "https://h/umavez/"} {
		if _, err := NewRemote(address, goodToken); err != nil {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// losing does what is asked, and loses the first replies.
type losing struct {
	direct
	lose int
}

func (l *losing) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := l.direct.RoundTrip(r)
	if l.lose--; l.lose >= 0 {
		return nil, http.ErrHandlerTimeout
	}
	return res, err
}

// TestRepliesThatAreLost: the change is made once, and said to be.
func TestRepliesThatAreLost(t *testing.T) {
	s := newShop(t)
	l := s.unknown("k")
	r := remoteTo(t, NewHandler(s.desk, tokenOf(goodToken), slog.New(slog.DiscardHandler)), goodToken)
	r.http.Transport = &losing{direct: r.http.Transport.(direct), lose: remoteTries - 1}
	s.must(settle(t.Context(), r, Change{ID: refTo(l), Action: "happened", Status: 201, Settlement: strings.Repeat("ab", 16)}))
	if n := len(show(t, s.desk, refTo(l)).Trail); n != 1 {
		t.Errorf("%d entries, want 1", n)
	}
	r.http.Transport = &losing{direct: direct{http.NotFoundHandler()}, lose: remoteTries}
	_, err := r.List(t.Context(), Filter{})
	refused(t, "no reply at all", err, CodeFailed, "--admin http://127.0.0.1:9091: no reply")
}

// TestSomebodyElseAnswers: another program, or a redirect, is not believed, and
// does not get the token.
func TestSomebodyElseAnswers(t *testing.T) {
	told := make(chan string, 10)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { told <- r.Header.Get("Authorization") }))
	t.Cleanup(elsewhere.Close)
	for what, h := range map[string]http.HandlerFunc{
		"a page":     func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) },
		"an error":   func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTeapot) },
		"other JSON": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404); w.Write([]byte(`{"code":404}`)) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		},
	} {
		_, err := remoteTo(t, h, goodToken).Show(t.Context(), strings.Repeat("0", 64))
		refused(t, what, err, CodeFailed, "and not as the admin address of serve does")
	}
	if len(told) > 0 {
		t.Error("a redirect was followed")
	}
}

// TestDocumentsAreComplete: no field of a document comes and goes, so that a
// script may rely on each.
func TestDocumentsAreComplete(t *testing.T) {
	for _, v := range []any{Key{}, Page{}, Shown{}, Entry{}, Found{}, Changed{}, Purged{}} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var object map[string]any
		if err := json.Unmarshal(text, &object); err != nil {
			t.Fatal(err)
		}
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			if _, there := object[f.Tag.Get("json")]; !there && !f.Anonymous {
				t.Errorf("%T leaves out %s when it is zero: %s", v, f.Name, text)
			}
		}
	}
}
