package umavezhttp

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/umavez/umavez/internal/wire"
)

func checkedOptions(t *testing.T, o Options) *Options {
	t.Helper()
	o.Namespace, o.Principal = "loja", Anonymous
	o, err := o.check()
	if err != nil {
		t.Fatal(err)
	}
	return &o
}

// refused writes a problem and returns the answer, and its document as a client
// reads it.
func refused(t *testing.T, o *Options, r *http.Request, p Problem) (*http.Response, map[string]any) {
	t.Helper()
	w := httptest.NewRecorder()
	o.refuse(w, r, p)
	res := w.Result()
	var document map[string]any
	if err := json.NewDecoder(res.Body).Decode(&document); err != nil {
		t.Fatal(err)
	}
	return res, document
}

func TestProblemDocuments(t *testing.T) {
	o := checkedOptions(t, Options{ProblemBase: "https://loja.example/problems", Docs: "https://loja.example/docs#keys"})
	for _, kind := range wire.ProblemTypes() {
		res, document := refused(t, o, request(), problemFor(kind.Code))
		for member, want := range map[string]any{
			"type": "https://loja.example/problems#" + kind.Code, "title": kind.Title,
			"status": float64(kind.Status), "code": kind.Code,
		} {
			if document[member] != want {
				t.Errorf("%s: %q is %v, want %v", kind.Code, member, document[member], want)
			}
		}
		if detail, _ := document["detail"].(string); !strings.HasSuffix(detail, ".") {
			t.Errorf("%s: the detail is %q", kind.Code, detail)
		}
		if len(document) != 5 {
			t.Errorf("%s: the document is %v", kind.Code, document)
		}
		for name, want := range map[string]string{
			"Content-Type": "application/problem+json", "Cache-Control": "no-store", "Content-Language": "en",
			"Link": `<https://loja.example/docs#keys>; rel="describedby"`, "Retry-After": "",
		} {
			if got := res.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", kind.Code, name, got, want)
			}
		}
		if res.StatusCode != kind.Status {
			t.Errorf("%s: the status is %d", kind.Code, res.StatusCode)
		}
	}
}

// TestProblemTitlesOfTheDraft: clients that know the draft know these.
func TestProblemTitlesOfTheDraft(t *testing.T) {
	for code, title := range map[string]string{
		wire.CodeMissingKey: "Idempotency-Key is missing",
		wire.CodeKeyReused:  "Idempotency-Key is already used",
		wire.CodeInProgress: "A request is outstanding for this Idempotency-Key",
	} {
		if got := problemFor(code).Title; got != title {
			t.Errorf("%s has the title %q", code, got)
		}
	}
}

func TestProblemShouldRetry(t *testing.T) {
	o := checkedOptions(t, Options{})
	for _, tc := range []struct {
		code  string
		after time.Duration
		retry string
		in    string
	}{
		{wire.CodeInProgress, 2 * time.Second, "true", "2"},
		{wire.CodeInProgress, 1200 * time.Millisecond, "true", "2"},
		{wire.CodeInProgress, time.Nanosecond, "true", "1"},
		{wire.CodeMissingKey, 0, "false", ""},
		{wire.CodeInvalidKey, 0, "false", ""},
		{wire.CodeKeyReused, 0, "false", ""},
		{wire.CodeOutcomeUnknown, 0, "false", ""},
		{wire.CodeOutcomeUnknown, time.Minute, "true", "60"}, // somebody is looking into it
		{wire.CodeReplayUnavailable, 0, "false", ""},
		{wire.CodeKeyExpired, 0, "false", ""},
		{wire.CodeAnswerTooLarge, 0, "false", ""},
		{wire.CodeRequestTooLarge, 0, "false", ""},
		{wire.CodeTooManyUnsettled, 0, "", ""},
		{wire.CodeStoreUnavailable, time.Second, "", "1"},
		{wire.CodeUnauthenticated, 0, "", ""},
	} {
		p := problemFor(tc.code)
		p.RetryAfter = tc.after
		res, _ := refused(t, o, request(), p)
		if got := res.Header.Get("Stripe-Should-Retry"); got != tc.retry {
			t.Errorf("%s, after %v: Stripe-Should-Retry is %q, want %q", tc.code, tc.after, got, tc.retry)
		}
		if got := res.Header.Get("Retry-After"); got != tc.in {
			t.Errorf("%s, after %v: Retry-After is %q, want %q", tc.code, tc.after, got, tc.in)
		}
	}
}

// TestProblemOfWhatMayRunAgain: with a Retry-After, no language says that it will
// not, and without one none says that it may.
func TestProblemOfWhatMayRunAgain(t *testing.T) {
	o := checkedOptions(t, Options{})
	for tag, says := range map[string]struct{ never, again string }{
		"en":    {"It is not run again", "Send the same request again later"},
		"pt-BR": {"Ela não é executada de novo", "Envie a mesma requisição mais tarde"},
	} {
		for _, after := range []time.Duration{0, time.Second} {
			p := problemFor(wire.CodeOutcomeUnknown)
			p.RetryAfter = after
			_, document := refused(t, o, request("Accept-Language", tag), p)
			detail, _ := document["detail"].(string)
			if strings.Contains(detail, says.never) != (after == 0) || strings.Contains(detail, says.again) != (after > 0) {
				t.Errorf("%s, Retry-After %v: %q", tag, after, detail)
			}
		}
	}
}

func TestProblemMembers(t *testing.T) {
	o := checkedOptions(t, Options{})
	p := problemFor(wire.CodeReplayUnavailable)
	p.Original = &OriginalAnswer{Status: 201, Location: "/pagamentos/7"}
	_, document := refused(t, o, request(), p)
	original, _ := document["original"].(map[string]any)
	if original["status"] != 201.0 || original["location"] != "/pagamentos/7" {
		t.Errorf("original is %v", document["original"])
	}
	p = problemFor(wire.CodeKeyReused)
	p.Differs = []string{"path", "body"}
	_, document = refused(t, o, request(), p)
	if got, _ := json.Marshal(document["differs"]); string(got) != `["path","body"]` {
		t.Errorf("differs is %s", got)
	}
	p = problemFor(wire.CodeReplayUnavailable)
	p.recipeUnknown = true
	if _, document = refused(t, o, request(), p); document["detail"] != replayRecipeDetail[english] {
		t.Errorf("of an unknown recipe the client is told: %v", document["detail"])
	}
	if problemFor(wire.CodeUnauthenticated).Status == 401 {
		res, _ := refused(t, o, request(), problemFor(wire.CodeUnauthenticated))
		if got := res.Header.Get("WWW-Authenticate"); got != "Bearer" {
			t.Errorf("the challenge of a 401 is %q", got)
		}
	}
}

// TestProblemReplacesHeaders: what an outer handler set for another body is gone.
func TestProblemReplacesHeaders(t *testing.T) {
	w := httptest.NewRecorder()
	for _, name := range []string{"Content-Length", "Content-Encoding", "ETag", "Last-Modified", "Content-Type", "Cache-Control"} {
		w.Header().Set(name, "stale")
	}
	w.Header().Set("X-Request-Id", "kept")
	o := checkedOptions(t, Options{})
	o.refuse(w, request(), problemFor(wire.CodeMissingKey))
	for name, values := range w.Header() {
		if values[0] == "stale" {
			t.Errorf("%s is still there", name)
		}
	}
	if w.Header().Get("X-Request-Id") != "kept" {
		t.Error("X-Request-Id is gone")
	}
}

func TestProblemInTheAPIsOwnSchema(t *testing.T) {
	var got Problem
	o := checkedOptions(t, Options{Problem: func(w http.ResponseWriter, _ *http.Request, p Problem) {
		got = p
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(p.Status)
		w.Write([]byte(`{"codigo":"ERRO_IDEMPOTENCIA"}`))
	}})
	p := problemFor(wire.CodeInProgress)
	p.RetryAfter = time.Second
	res, document := refused(t, o, request("Accept-Language", "pt-BR"), p)
	if document["codigo"] != "ERRO_IDEMPOTENCIA" || res.StatusCode != 409 || res.Header.Get("Content-Type") != "application/json" {
		t.Errorf("the answer is %d %v %v", res.StatusCode, res.Header, document)
	}
	if got.Language != "pt-BR" || got.Detail != problemDetails[wire.CodeInProgress][portuguese] || !strings.HasSuffix(got.Type, "#in-progress") {
		t.Errorf("the function was given %+v", got)
	}
	// What a client needs in order to retry does not depend on the function.
	for name, want := range map[string]string{
		"Retry-After": "1", "Stripe-Should-Retry": "true", "Cache-Control": "no-store", "Content-Language": "", "Link": "",
	} {
		if value := res.Header.Get(name); value != want {
			t.Errorf("%s is %q, want %q", name, value, want)
		}
	}
}

func TestProblemLanguages(t *testing.T) {
	o := checkedOptions(t, Options{})
	for header, want := range map[string]string{
		"":                                "en",
		"pt-BR":                           "pt-BR",
		"pt":                              "pt-BR",
		"PT-pt":                           "pt-BR",
		"en":                              "en",
		"de":                              "en",
		"*":                               "en",
		"de, pt;q=0.5":                    "pt-BR",
		"en, pt":                          "en",
		"pt, en":                          "pt-BR",
		"pt;q=0.8, en;q=0.9":              "en",
		"en;q=0.8 , pt-BR ; q = 0.9":      "pt-BR",
		"pt-BR,pt;q=0.9,en-US;q=0.8":      "pt-BR",
		"en-US,en;q=0.9,pt-BR;q=0.8":      "en",
		"pt;q=0":                          "en",
		"en;q=0":                          "en",
		"en;q=0, *":                       "pt-BR",
		"en;q=0, pt;q=0.1":                "pt-BR",
		"pt;q=0.9, pt-PT;q=0.1, en;q=0.5": "pt-BR",
		"pt;q=nan, en;q=0.1":              "en",
		"pt;q=2, en;q=0.1":                "en",
		"pt;x=1, en;q=0.1":                "en",
		",;,,pt;q=0.3,":                   "pt-BR",
		"ptolemaic":                       "en",
		"de-pt":                           "en",
		"pt;q=-1":                         "en",
		strings.Repeat("de,", 999) + "pt": "pt-BR",
	} {
		r := request()
		if header != "" {
			r.Header.Set("Accept-Language", header)
		}
		res, document := refused(t, o, r, problemFor(wire.CodeMissingKey))
		lang := english
		if want == "pt-BR" {
			lang = portuguese
		}
		if res.Header.Get("Content-Language") != want || document["detail"] != problemDetails[wire.CodeMissingKey][lang] {
			t.Errorf("%.40q: %s: %v", header, res.Header.Get("Content-Language"), document["detail"])
		}
	}
	r := request("Accept-Language", "en;q=0.3", "Accept-Language", "pt")
	if res, _ := refused(t, o, r, problemFor(wire.CodeMissingKey)); res.Header.Get("Content-Language") != "pt-BR" {
		t.Error("the second line of Accept-Language does not count")
	}
}

// TestProblemTexts: every code says something, in each language something else,
// and every refusal before the operation says that nothing was done.
func TestProblemTexts(t *testing.T) {
	for _, kind := range wire.ProblemTypes() {
		texts := problemDetails[kind.Code]
		if texts[english] == "" || texts[portuguese] == "" || texts[english] == texts[portuguese] {
			t.Errorf("%s: %q", kind.Code, texts)
		}
	}
	if len(problemDetails) != len(wire.ProblemTypes()) {
		t.Errorf("%d texts for %d codes", len(problemDetails), len(wire.ProblemTypes()))
	}
	for _, code := range []string{wire.CodeMissingKey, wire.CodeInvalidKey, wire.CodeKeyReused, wire.CodeRequestTooLarge, wire.CodeRequestIncomplete} {
		if texts := problemDetails[code]; !strings.Contains(texts[english], "Nothing was done") || !strings.Contains(texts[portuguese], "Nada foi feito") {
			t.Errorf("%s does not say that nothing was done: %q", code, texts)
		}
	}
	for fault := wire.KeyEmpty; fault <= wire.KeyTrailing; fault++ {
		if texts := keyFaults[fault]; texts[english] == "" || texts[portuguese] == "" {
			t.Errorf("key fault %d: %q", fault, texts)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a code that does not exist is taken")
		}
	}()
	problemFor("no-such-code")
}
