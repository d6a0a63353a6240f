package umavezhttp_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/umavezhttp"
)

// ask asks for a key's status, as a path spells it.
func askStatus(once *umavezhttp.Once, method, segment string, headers ...string) reply {
	mux := http.NewServeMux()
	mux.Handle("/.umavez/keys/{key}", once.Status())
	r := httptest.NewRequest(method, "/.umavez/keys/"+segment, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return serve(mux, r)
}

// statusOf asks where a key stands.
func statusOf(t *testing.T, once *umavezhttp.Once, key string) (s umavezhttp.Status) {
	t.Helper()
	got := askStatus(once, http.MethodGet, url.PathEscape(key))
	if err := json.Unmarshal([]byte(got.body), &s); err != nil {
		t.Fatalf("%v: %v", got, err)
	}
	if got.header.Get("Cache-Control") != "no-store" || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("header: %v", got)
	}
	if want := map[bool]int{true: 404, false: 200}[s.State == "vacant"]; got.status != want {
		t.Errorf("%s: %d", s.State, got.status)
	}
	return s
}

// TestR15_EveryState: what is said of a key, in every state of its life.
func TestR15_EveryState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		once := setup{engine: umavez.Options{Retain: time.Hour}}.once(t)
		named, err := once.With(umavezhttp.Route{Name: "r"})
		if err != nil {
			t.Fatal(err)
		}
		asked, err := once.Reconcile(named.Opaque(answers(503, "")), umavez.Reconciler{Ask: (&oracle{say: stillUnknown}).Ask})
		if err != nil {
			t.Fatal(err)
		}
		crash := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		running := make(chan reply)
		go func() { running <- post(once.Opaque(taking(time.Minute, pay)), "running") }()
		synctest.Wait()
		post(once.Opaque(http.HandlerFunc(pay)), "done")
		post(once.Opaque(answers(206, "part")), "bare")
		mustPanic(t, func() { post(once.Opaque(crash), "unknown") })
		mustPanic(t, func() { post(once.Rerunnable(crash), "lost") })
		post(asked, "asked")
		time.Sleep(1500 * time.Millisecond)
		for key, want := range map[string]string{
			"never":   `{"state":"vacant"}`,
			"running": `{"state":"running","age_seconds":1.5,"since_seconds":1.5}`,
			"done":    `{"state":"done","age_seconds":1.5,"since_seconds":1.5,"answer_status":201,"replayable":true,"expires_in_seconds":3598.5}`,
			"bare":    `{"state":"done","age_seconds":1.5,"since_seconds":1.5,"answer_status":206,"replayable":false,"expires_in_seconds":3598.5}`,
			"unknown": `{"state":"unknown","reason":"panic","age_seconds":1.5,"since_seconds":1.5}`,
			"lost":    `{"state":"lost","reason":"panic","age_seconds":1.5,"since_seconds":1.5}`,
			"asked":   `{"state":"unknown","reason":"5xx","age_seconds":1.5,"since_seconds":1.5,"next_turn_in_seconds":8.5}`,
		} {
			statusOf(t, once, key)
			if got := askStatus(once, http.MethodGet, key); got.body != want+"\n" {
				t.Errorf("%s: %s\nwant %s", key, got.body, want)
			}
		}
		<-running
		time.Sleep(2 * time.Hour)
		if got := askStatus(once, http.MethodGet, "done"); !strings.HasPrefix(got.body, `{"state":"expired","age_seconds":7`) {
			t.Errorf("expired: %v", got)
		}
	})
}

// TestR15_KeysInPaths: every key that a request can have can be asked for, and
// nothing else.
func TestR15_KeysInPaths(t *testing.T) {
	once := setup{}.once(t)
	h := once.Opaque(http.HandlerFunc(pay))
	for _, key := range []string{"a/b", "a b", `a"b\c`, "..", ".", "a%2Fb", "a+b", "?#&=", "//", strings.Repeat("k", 255)} {
		r := newRequest("")
		r.Header.Set("Idempotency-Key", `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key)+`"`)
		if got := serve(h, r); got.status != 201 {
			t.Fatalf("%q: %v", key, got)
		}
		segment := strings.ReplaceAll(url.PathEscape(key), ".", "%2E")
		if got := askStatus(once, http.MethodGet, segment); got.status != 200 || !strings.Contains(got.body, `"done"`) {
			t.Errorf("%q as %s: %v", key, segment, got)
		}
	}
	for _, segment := range []string{"%20", "%C3%A9", "%00", "%0A", strings.Repeat("k", 256)} {
		askStatus(once, http.MethodGet, segment).mustRefuse(t, 400, "invalid-key")
	}
	serve(once.Status(), httptest.NewRequest(http.MethodGet, "/.umavez/keys/", nil)).mustRefuse(t, 400, "invalid-key")
}

// TestR15_OnlyItsOwn: to everybody else a key is one that nobody holds.
func TestR15_OnlyItsOwn(t *testing.T) {
	tenant := func(r *http.Request) (string, error) { return r.Header.Get("X-Tenant"), nil }
	once := setup{http: umavezhttp.Options{Principal: tenant}}.once(t)
	post(once.Opaque(http.HandlerFunc(pay)), "k", "X-Tenant", "acme")
	mine := askStatus(once, http.MethodGet, "k", "X-Tenant", "acme")
	theirs := askStatus(once, http.MethodGet, "k", "X-Tenant", "evil")
	nobodys := askStatus(once, http.MethodGet, "other", "X-Tenant", "evil")
	if mine.status != 200 || theirs.status != 404 || theirs.String() != nobodys.String() {
		t.Errorf("mine %v\ntheirs %v\nnobody's %v", mine, theirs, nobodys)
	}
	stranger := askStatus(once, http.MethodGet, "k")
	stranger.mustRefuse(t, 401, "unauthenticated")
}

// TestR15_Methods: it is read, and nothing else.
func TestR15_Methods(t *testing.T) {
	once := setup{}.once(t)
	post(once.Opaque(http.HandlerFunc(pay)), "k")
	if got := askStatus(once, http.MethodHead, "k"); got.status != 200 || got.body != "" || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("HEAD: %v", got)
	}
	if got := askStatus(once, http.MethodHead, "never"); got.status != 404 || got.body != "" {
		t.Errorf("HEAD: %v", got)
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS"} {
		if got := askStatus(once, method, "k"); got.status != 405 || got.header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %v", method, got)
		}
	}
}

// TestR15_StoreDown: what is not known is not called vacant.
func TestR15_StoreDown(t *testing.T) {
	quiet(t)
	once := setup{store: &faultyStore{before: func(string) error { return errStoreDown }}}.once(t)
	got := askStatus(once, http.MethodGet, "k")
	got.mustRefuse(t, 503, "store-unavailable")
	if strings.Contains(got.body, "secret") {
		t.Errorf("shows the store's inside: %v", got)
	}
}
