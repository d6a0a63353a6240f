package wire

import (
	"net/http"
	"strings"
	"testing"
)

// TestProblemTypes: the table of docs/http.md, and no code twice.
func TestProblemTypes(t *testing.T) {
	want := map[string]int{
		"missing-key": 400, "invalid-key": 400, "key-reused": 422, "in-progress": 409,
		"outcome-unknown": 409, "replay-unavailable": 409, "key-expired": 409,
		"too-many-unsettled": 429, "answer-too-large": 500, "store-unavailable": 503,
		"request-too-large": 413, "request-incomplete": 400, "unauthenticated": 401,
		"caller-unavailable": 503, "upstream-unreachable": 502, "ambiguous-path": 400,
	}
	for _, p := range ProblemTypes() {
		if status, ok := want[p.Code]; !ok || status != p.Status {
			t.Errorf("%s is %d, want %d", p.Code, p.Status, status)
		}
		delete(want, p.Code)
		if p.Title == "" || strings.HasSuffix(p.Title, ".") {
			t.Errorf("%s has the title %q", p.Code, p.Title)
		}
		if got, ok := ProblemTypeOf(p.Code); !ok || got != p {
			t.Errorf("ProblemTypeOf(%q) = %+v, %v", p.Code, got, ok)
		}
	}
	if len(want) > 0 {
		t.Errorf("codes that are missing, or twice: %v", want)
	}
	if _, ok := ProblemTypeOf("no-such-code"); ok {
		t.Error("a code that does not exist was found")
	}
}

// TestHeaderNamesAreCanonical: they index a header map directly, where any other
// form would find nothing.
func TestHeaderNamesAreCanonical(t *testing.T) {
	for _, name := range []string{
		IdempotencyKey, IdempotentReplayed, IdempotencyStatus, IdempotencyExpires,
		IdempotencyOutcome, ShouldRetry, RetryAfter, Prefer, PreferenceApplied,
	} {
		if canonical := http.CanonicalHeaderKey(name); canonical != name {
			t.Errorf("%q should be %q", name, canonical)
		}
	}
}
