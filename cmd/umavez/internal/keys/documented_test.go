package keys

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestDocumentedFields: docs/keys.md names every field of what scripts read, and
// every code.
func TestDocumentedFields(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/keys.md")
	if errors.Is(err, os.ErrNotExist) && os.Getenv("CI") == "" {
		t.Skip("docs/keys.md is not here: this module was built outside its repository")
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{Key{}, Shown{}, Entry{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			if name := f.Tag.Get("json"); !f.Anonymous && !strings.Contains(string(page), "`"+name+"`") {
				t.Errorf("docs/keys.md does not name %s of %T", name, v)
			}
		}
	}
	for code := range statuses {
		if !strings.Contains(string(page), "`"+string(code)+"`") {
			t.Errorf("docs/keys.md does not name the code %s", code)
		}
	}
	for _, v := range []any{Change{}, Names{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); !strings.Contains(string(page), `"`+name+`"`) {
				t.Errorf("docs/keys.md does not name %s of %T", name, v)
			}
		}
	}
}
