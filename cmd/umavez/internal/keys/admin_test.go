package keys

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// asked makes a request of the admin API, with the token unless the change says
// otherwise.
func asked(h http.Handler, method, target, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+goodToken)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func with(name, value string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Del(name)
		if value != "" {
			r.Header.Set(name, value)
		}
	}
}

// TestToken: without it nothing is told, of whatever path; with it, it is. No
// token is logged.
func TestToken(t *testing.T) {
	var log strings.Builder
	s := newShop(t)
	h := NewHandler(s.desk, tokenOf(goodToken), slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	for _, authorization := range []string{
		"", "Bearer", "Bearer ", "Bearer s3cret-token-of-somebody", "Bearer " + goodToken[:20], "Bearer " + goodToken + "x",
		"Basic " + goodToken, goodToken, "Bearer " + strings.ToUpper(goodToken), "Bearer  " + goodToken,
	} {
		for _, path := range []string{"/keys", "/keys/", "/keys/nothing", "/keys/find"} {
			w := asked(h, http.MethodGet, path, "", with("Authorization", authorization))
			if w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "--admin-token") || w.Header().Get("Www-Authenticate") == "" {
				t.Errorf("%q on %s: %d %s", authorization, path, w.Code, w.Body)
			}
		}
	}
	for shown, says := range map[string]string{"": "this needs the token of serve", "Bearer s3cret-token-of-somebody": "this is not serve's token"} {
		if w := asked(h, http.MethodGet, "/keys", "", with("Authorization", shown)); !strings.Contains(w.Body.String(), says) {
			t.Errorf("%q: %s, want %s", shown, w.Body, says)
		}
	}
	twice := func(r *http.Request) { r.Header.Add("Authorization", "Bearer "+goodToken) }
	if w := asked(h, http.MethodGet, "/keys", "", twice); w.Code != http.StatusUnauthorized {
		t.Errorf("two Authorization fields: %d", w.Code)
	}
	for _, scheme := range []string{"Bearer ", "bearer "} {
		if w := asked(h, http.MethodGet, "/keys", "", with("Authorization", scheme+goodToken)); w.Code != http.StatusOK || w.Body.String() != `{"keys":[],"next":""}`+"\n" {
			t.Errorf("with the token: %d %s", w.Code, w.Body)
		}
	}
	if strings.Contains(log.String(), "s3cret") || strings.Contains(log.String(), goodToken) {
		t.Errorf("a token is in the log:\n%s", log.String())
	}
	if text := fmt.Sprintf("%+v %#v %s", tokenOf(goodToken), tokenOf(goodToken), tokenOf(goodToken)); strings.Contains(text, goodToken) {
		t.Error("a token prints itself")
	}
}

// TestAdminRefuses what pages of other sites can send, and what is not understood.
func TestAdminRefuses(t *testing.T) {
	s := newShop(t)
	l := s.unknown("k")
	h := NewHandler(s.desk, tokenOf(goodToken), slog.New(slog.DiscardHandler))
	change := `{"id":"` + refTo(l) + `","action":"park","who":"ana","reason":"r"}`
	origin := func(value string) func(*http.Request) { return with("Origin", value) }
	for _, c := range []struct {
		what, method, target, body string
		change                     func(*http.Request)
		want                       int
	}{
		{"a form", "POST", "/keys/settle", change, with("Content-Type", "application/x-www-form-urlencoded"), 400},
		{"text", "POST", "/keys/settle", change, with("Content-Type", "text/plain"), 400},
		{"no type", "POST", "/keys/settle", change, with("Content-Type", ""), 400},
		{"a foreign page", "POST", "/keys/settle", change, origin("https://evil.example"), 403},
		{"a page without a name", "POST", "/keys/settle", change, origin("null"), 403},
		{"a foreign fetch", "POST", "/keys/settle", change, with("Sec-Fetch-Site", "cross-site"), 403},
		{"a link", "GET", "/keys/settle?id=x&action=park", "", nil, 400},
		{"another method", "PUT", "/keys/settle", change, nil, 405},
		{"a method for none", "DELETE", "/keys/" + refTo(l), "", nil, 405},
		{"another path", "POST", "/keys/reseal", "{}", nil, 405},
		{"a field too many", "POST", "/keys/settle", strings.Replace(change, "{", `{"quiet":0,`, 1), nil, 400},
		{"two objects", "POST", "/keys/settle", change + change, nil, 400},
		{"no JSON", "POST", "/keys/settle", "action=park", nil, 400},
		{"too much", "POST", "/keys/settle", `{"body":"` + strings.Repeat("A", maxRequest) + `"}`, nil, 400},
		{"no name", "POST", "/keys/settle", strings.Replace(change, `"ana"`, `""`, 1), nil, 400},
		{"a long name", "POST", "/keys/settle", strings.Replace(change, "ana", strings.Repeat("a", MaxWho+1), 1), nil, 400},
		{"settle by forget", "POST", "/keys/forget", change, nil, 400},
		{"an unknown filter", "GET", "/keys?status=unknown", "", nil, 400},
		{"a filter twice", "GET", "/keys?route=a&route=b", "", nil, 400},
		{"no duration", "GET", "/keys?older_than=1", "", nil, 400},
		{"no number", "GET", "/keys?limit=many", "", nil, 400},
		{"no ID", "GET", "/keys/abc", "", nil, 400},
		{"no record", "GET", "/keys/" + strings.Repeat("0", 64), "", nil, 404},
	} {
		changes := []func(*http.Request){}
		if c.change != nil {
			changes = append(changes, c.change)
		}
		if w := asked(h, c.method, c.target, c.body, changes...); w.Code != c.want {
			t.Errorf("%s: %d %s, want %d", c.what, w.Code, w.Body, c.want)
		}
	}
	if shown := show(t, s.desk, refTo(l)); len(shown.Trail) != 0 {
		t.Errorf("something was changed: %+v", shown.Trail)
	}
	if w := asked(h, "POST", "/keys/settle", change, origin("http://example.com")); w.Code != 200 || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("its own page: %d %s", w.Code, w.Body)
	}
	if e := show(t, s.desk, refTo(l)).Trail; len(e) != 1 || e[0].Who != "ana via admin" {
		t.Errorf("the trail is %+v", e)
	}
}

// TestClosed: without a token nothing is told, and what to set is.
func TestClosed(t *testing.T) {
	w := asked(Closed(), http.MethodGet, "/keys", "")
	if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "--admin-token FILE") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	_, err := remoteTo(t, Closed(), goodToken).List(t.Context(), Filter{})
	refused(t, "by the client", err, CodeClosed, "this serve does not show its keys")
}

// brokenDesk is one whose store fails, and tells of its inside.
type brokenDesk struct{ Desk }

func (brokenDesk) List(context.Context, Filter) (Page, error) {
	return Page{}, failed("the store did not list its records", errors.New("disk I/O error in /var/s3cret"))
}

// TestStoresErrorsStayInside: the client is told that it failed, the log why.
func TestStoresErrorsStayInside(t *testing.T) {
	var log strings.Builder
	h := NewHandler(brokenDesk{}, tokenOf(goodToken), slog.New(slog.NewTextHandler(&log, nil)))
	_, err := remoteTo(t, h, goodToken).List(t.Context(), Filter{})
	refused(t, "client", err, CodeFailed, "the store did not list its records; the log of serve says why")
	if strings.Contains(err.Error(), "s3cret") || !strings.Contains(log.String(), "disk I/O error in /var/s3cret") {
		t.Errorf("told %v, logged %s", err, log.String())
	}
}

// TestTokenFiles: who may read it, and what it may hold.
func TestTokenFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct{ file, says string }{
		{filepath.Join(dir, "none"), "no such file"},
		{dir, "is no file"},
		{file("group", goodToken, 0o640), "others than its owner may read it (-rw-r-----); chmod 600"},
		{file("all", goodToken, 0o604), "chmod 600"},
		{file("short", "123456789012345\n", 0o600), "holds 15 bytes, and needs 16 to 4096"},
		{file("empty", "", 0o600), "holds 0 bytes"},
		{file("long", strings.Repeat("x", 5000), 0o600), "needs 16 to 4096"},
		{file("lines", "0123456789abcdef\n0123456789abcdef\n", 0o600), "must be one line of visible ASCII"},
		{file("blank", "0123456789 abcdef", 0o600), "must be one line of visible ASCII"},
	} {
		if _, err := ReadToken(c.file); err == nil || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "--admin-token "+c.file+": ") || strings.Contains(err.Error(), goodToken) {
			t.Errorf("%s: %v, want it to say %q", c.file, err, c.says)
		}
	}
	for _, text := range []string{goodToken, goodToken + "\n", goodToken + "\r\n"} {
		if got, err := ReadToken(file("good", text, 0o400)); err != nil || got != tokenOf(goodToken) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
