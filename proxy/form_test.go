package proxy

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/umavez/umavez/umavezhttp"
)

// hostile are values that would each break out of some place.
var hostile = []string{
	"a/b", "../../admin", "..", ".", "a?x=1", "a#f", "a&admin=true", "a=b", "a;b", "a%2Fb", "%", "%00", "a b", "a+b",
	"@evil.example", "//evil.example/", "http://evil.example", "\\", `\"`, `"`, `","admin":true,"x":"`, "\r\nX-Evil: 1", "\n", "\x00",
	"\u2028", "ção", "日本", "😀", "{{.Key}}", `{{env "SECRET"}}`, "${x}", "<script>", "'", "`", ":", "a:b@c", " a", "a ", "\t", "\x7f", "*",
}

// of are the facts of a kept request with this key and this value in its body.
func of(t *testing.T, key, value string) *facts {
	t.Helper()
	body, err := json.Marshal(map[string]any{"order": map[string]any{"id": value, "n": json.Number("9007199254740993"), "list": []int{1}}})
	if err != nil {
		t.Fatal(err)
	}
	return &facts{
		id: "1d", route: "pay", derived: func(step string) string { return "derived-" + step },
		kept: &keptFacts{key: key, sentKey: key, principal: "9:anonymous,", body: body},
	}
}

// testChecker lets everything be used.
func testChecker() *checker {
	return &checker{keeps: true, env: func(name string) (string, bool) { return "of-" + name, name == "TOKEN" }}
}

// TestHostileValuesInURL: whatever the value is, the URL has the same parts, and
// the parts hold the value as it is; or the question is not asked at all.
func TestHostileValuesInURL(t *testing.T) {
	in, err := testChecker().question(Question{URL: `https://gw.example:8443/v1/charges/{{field "/order/id"}}/state?ref={{field "/order/id"}}&limit=1`})
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range hostile {
		req, err := in.request(t.Context(), of(t, "k", value))
		if value == "." || value == ".." {
			if err == nil {
				t.Errorf("%q as a path segment makes %v", value, req.URL)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", value, err)
			continue
		}
		// As a server reads it, from the request line.
		u, err := url.ParseRequestURI(req.URL.RequestURI())
		if err != nil {
			t.Errorf("%q: %v", value, err)
			continue
		}
		segments := strings.Split(u.EscapedPath(), "/")
		if len(segments) != 5 || segments[1] != "v1" || segments[2] != "charges" || segments[4] != "state" {
			t.Errorf("%q has changed the path: %q", value, u.EscapedPath())
			continue
		}
		if got, err := url.PathUnescape(segments[3]); err != nil || got != value {
			t.Errorf("%q arrives in the path as %q (%v)", value, got, err)
		}
		q, err := url.ParseQuery(u.RawQuery)
		if err != nil || len(q) != 2 || len(q["ref"]) != 1 || q["ref"][0] != value || q.Get("limit") != "1" {
			t.Errorf("%q has changed the query: %q (%v)", value, u.RawQuery, err)
		}
		if req.URL.Host != "gw.example:8443" || req.Host != "gw.example:8443" || req.URL.Fragment != "" || req.URL.User != nil {
			t.Errorf("%q has changed the origin: %v", value, req.URL)
		}
	}
}

// TestHostileValuesInJSON: the document has the members that were written, and
// the value is what it was.
func TestHostileValuesInJSON(t *testing.T) {
	in, err := testChecker().question(Question{
		URL:  "https://gw.example/search",
		Body: `{"ref": {{field "/order/id"}}, "text": "order {{field "/order/id"}}!", "key": "{{.Key}}", "n": {{field "/order/n"}}}`,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range hostile {
		text, err := in.body.fill(of(t, value, value))
		if err != nil {
			t.Errorf("%q: %v", value, err)
			continue
		}
		var got map[string]any
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&got); err != nil || len(got) != 4 {
			t.Errorf("%q makes %s (%v)", value, text, err)
			continue
		}
		if got["ref"] != value || got["text"] != "order "+value+"!" || got["key"] != value || got["n"] != json.Number("9007199254740993") {
			t.Errorf("%q arrives as %v", value, got)
		}
	}
}

// TestHostileValuesInForm: a posted form keeps its parameters.
func TestHostileValuesInForm(t *testing.T) {
	in, err := testChecker().question(Question{
		URL: "https://gw.example/search", Header: map[string]string{"content-type": "application/x-www-form-urlencoded"},
		Body: `ref={{field "/order/id"}}&limit=1`,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range hostile {
		text, err := in.body.fill(of(t, "k", value))
		if err != nil {
			t.Errorf("%q: %v", value, err)
			continue
		}
		if q, err := url.ParseQuery(text); err != nil || len(q) != 2 || len(q["ref"]) != 1 || q["ref"][0] != value {
			t.Errorf("%q makes %q (%v)", value, text, err)
		}
	}
}

// TestHostileValuesInHeader: what can stand in a header is there as it is, and
// what cannot keeps the question from being asked.
func TestHostileValuesInHeader(t *testing.T) {
	in, err := testChecker().question(Question{
		URL: "https://gw.example/", Header: map[string]string{"X-Ref": `{{field "/order/id"}}`, "Authorization": `Bearer {{env "TOKEN"}}`},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range hostile {
		req, err := in.request(t.Context(), of(t, "k", value))
		fits := strings.Trim(value, " ") == value &&
			!strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
		switch {
		case err == nil && !fits:
			t.Errorf("%q was put into a header", value)
		case err != nil && fits:
			t.Errorf("%q: %v", value, err)
		case err == nil && (req.Header.Get("X-Ref") != value || len(req.Header) != 2 || req.Header.Get("Authorization") != "Bearer of-TOKEN"):
			t.Errorf("%q makes %v", value, req.Header)
		}
	}
}

// TestHostileValuesInLocation: of an answer, too, an address keeps its parts.
func TestHostileValuesInLocation(t *testing.T) {
	a, err := testChecker().answer(Answer{
		Status: 201, Header: map[string]string{"Location": `/orders/{{response "/order/id"}}?of={{field "/order/id"}}`},
		Body: `{"id": {{response "/order/id"}}}`,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range hostile {
		from := of(t, "k", value)
		from.response = from.kept.body
		got, err := a.fill(from, nil)
		if value == "." || value == ".." {
			if err == nil {
				t.Errorf("%q makes %v", value, got.Header)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", value, err)
			continue
		}
		u, err := url.Parse(got.Header.Get("Location"))
		if err != nil || u.Host != "" || u.Path != "/orders/"+value || u.Query().Get("of") != value || len(u.Query()) != 1 {
			t.Errorf("%q makes the address %q (%v)", value, got.Header.Get("Location"), err)
		}
		var body map[string]string
		if err := json.Unmarshal(got.Body, &body); err != nil || len(body) != 1 || body["id"] != value {
			t.Errorf("%q makes the body %s (%v)", value, got.Body, err)
		}
		if _, err := umavezhttp.Happened(got); err != nil {
			t.Errorf("%q: %v", value, err)
		}
	}
}

// TestValuesThatAreMissing: what is not there, or is no single value, or could be
// read in two ways, keeps the question from being asked.
func TestValuesThatAreMissing(t *testing.T) {
	for name, body := range map[string]string{
		"no body":             ``,
		"no JSON":             `order=1`,
		"no member":           `{"order":{}}`,
		"empty":               `{"order":{"id":""}}`,
		"null":                `{"order":{"id":null}}`,
		"an object":           `{"order":{"id":{"a":1}}}`,
		"two members":         `{"order":{"id":"a","id":"b"}}`,
		"two members above":   `{"order":{"id":"a"},"order":{"id":"b"}}`,
		"half a pair":         `{"order":{"id":"\ud800"}}`,
		"not UTF-8":           "{\"order\":{\"id\":\"a\xff\"}}",
		"two documents":       `{"order":{"id":"a"}}{"order":{"id":"b"}}`,
		"an element by name":  `{"order":["a"]}`,
		"something after the": `{"order":{"id":"a"}} x`,
	} {
		in, err := testChecker().question(Question{URL: `https://gw.example/{{field "/order/id"}}`})
		if err != nil {
			t.Fatal(err)
		}
		from := of(t, "k", "x")
		from.kept.body = []byte(body)
		if req, err := in.request(t.Context(), from); err == nil {
			t.Errorf("%s: asks %v", name, req.URL)
		} else if strings.Contains(err.Error(), body) && body != "" {
			t.Errorf("%s: the error tells of the body: %v", name, err)
		}
		from.kept = nil
		if _, err := in.request(t.Context(), from); err == nil {
			t.Errorf("%s: asked without a request", name)
		}
	}
}

// TestWhatNeedsNoRequest is asked without one, and the key as it was sent is in
// quotes where it was.
func TestWhatNeedsNoRequest(t *testing.T) {
	in, err := (&checker{}).question(Question{URL: `http://gw/{{.Route}}/{{.ID}}?k={{derivedKey "charge"}}&l={{.DerivedKey "charge"}}`, Method: "HEAD"})
	if err != nil {
		t.Fatal(err)
	}
	from := of(t, "", "")
	from.kept = nil
	req, err := in.request(t.Context(), from)
	if err != nil || req.URL.String() != "http://gw/pay/1d?k=derived-charge&l=derived-charge" || req.Method != http.MethodHead {
		t.Errorf("asks %v (%v)", req, err)
	}
}

// TestFindFollowsPointers: RFC 6901, and no more.
func TestFindFollowsPointers(t *testing.T) {
	document := []byte(` {"a/b":{"m~n":[10,{"":true}]},"":"e","n":null,"A":1} `)
	for pointer, want := range map[string]string{
		"": strings.TrimSpace(string(document)), "/": `"e"`, "/a~1b/m~0n/0": "10", "/a~1b/m~0n/1/": "true", "/n": "null", "/A": "1",
		"/a": "", "/a~1b/m~0n/01": "", "/a~1b/m~0n/2": "", "/a~1b/m~0n/-": "", "/a~1b/m~0n/-1": "", "/n/x": "", "//x": "",
	} {
		path, err := parsePointer(pointer)
		if err != nil {
			t.Errorf("%q: %v", pointer, err)
			continue
		}
		got, found, err := find(document, path)
		if err != nil || string(got) != want || found != (want != "") {
			t.Errorf("%q finds %q (%v, %v), want %q", pointer, got, found, err, want)
		}
	}
	for _, pointer := range []string{"a", "/~", "/~2", "/a~", "/\xff"} {
		if _, err := parsePointer(pointer); err == nil {
			t.Errorf("%q is taken for a pointer", pointer)
		}
	}
}

func TestEqualJSON(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`1`, `1.0`, true},
		{`10.50`, `10.5`, true},
		{`1e2`, `100`, true},
		{`-0`, `0`, true},
		{`9007199254740993`, `9007199254740992`, false},
		{`9007199254740993`, `9007199254740993`, true},
		{`"1"`, `1`, false},
		{`"a"`, `"\u0061"`, true},
		{`"A"`, `"a"`, false},
		{`"\ud800"`, `"\ud801"`, false},
		{`true`, `true`, true},
		{`true`, `"true"`, false},
		{`null`, `null`, true},
		{`null`, `false`, false},
		{`1`, `true`, false},
	} {
		if got := equalJSON(json.RawMessage(c.a), json.RawMessage(c.b)); got != c.want {
			t.Errorf("%s and %s: %v, want %v", c.a, c.b, got, c.want)
		}
		if got := equalJSON(json.RawMessage(c.b), json.RawMessage(c.a)); got != c.want {
			t.Errorf("%s and %s: %v, want %v", c.b, c.a, got, c.want)
		}
	}
}
