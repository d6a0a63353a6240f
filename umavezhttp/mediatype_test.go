package umavezhttp

import (
	"mime"
	"strings"
	"testing"
)

// TestParseMediaType holds it against mime.ParseMediaType: what it reads, it
// reads like that one; what it does not, it leaves as it is.
func TestParseMediaType(t *testing.T) {
	for _, line := range []string{
		"application/json", " application/json ", "Application/JSON", "text/plain;charset=utf-8", `text/plain; charset="utf-8"`,
		`text/plain ; a=b ; CHARSET=Latin1 ; c="d;e"`, "text/plain;", "text/plain; ;", "text/plain;;charset=a",
		`multipart/form-data; boundary=----x`, `multipart/form-data; boundary="a b"; charset=utf-8`, "a/b",
	} {
		want, params, err := mime.ParseMediaType(line)
		if err != nil {
			params = map[string]string{} // mime knows no empty parameters; we pass them over
			want, _, _ = strings.Cut(line, ";")
			params["charset"] = map[bool]string{true: "a"}[strings.Contains(line, "charset")]
		}
		got := parseMediaType([]string{line})
		if got.raw != nil || !strings.EqualFold(got.media, want) || got.charset != params["charset"] || got.boundary != params["boundary"] {
			t.Errorf("%q is read as %+v, by mime as %q, %q", line, got, want, params)
		}
	}
	for _, line := range []string{
		"", "json", "/", "a/", "/b", "a b/c", "a/b c", "a/b/c", "a/b; charset", "a/b; charset=", `a/b; charset=""`, `a/b; charset="x`, `a/b; charset="x"y`,
		`a/b; charset="\x"`, "a/b; charset=a; charset=a", "a/b; charset=a; Charset=b", "a/b; =x", "a/b; c d=x", "a/b, c/d", "é/b", "a/b; charset=é",
		"multipart/form-data; boundary=a; boundary=b", "multipart/form-data; boundary=a b",
	} {
		if got := parseMediaType([]string{line}); got.raw == nil {
			t.Errorf("%q is read as %+v", line, got)
		}
	}
	if got := parseMediaType(nil); got.raw != nil || got.media != "" {
		t.Errorf("nothing is read as %+v", got)
	}
}

// TestMediaTypesAreApart: what could not be read is like nothing that was.
func TestMediaTypesAreApart(t *testing.T) {
	seen := map[string][]string{}
	for _, lines := range [][]string{
		nil, {""}, {"a/b"}, {"a/b;charset=c"}, {"a/b;c"}, {"a/b,c"}, {"a/b", "c"}, {"a/b", "a/b"}, {"c", "a/b"}, {"\x00a/b"}, {"a/b;charset=c;charset=c"},
	} {
		got := string(parseMediaType(lines).append(nil))
		if other, ok := seen[got]; ok {
			t.Errorf("%q and %q count as %q", lines, other, got)
		}
		seen[got] = lines
	}
}
