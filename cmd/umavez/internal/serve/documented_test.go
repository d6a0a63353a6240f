package serve

import (
	"errors"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// page is docs/serve.md, seen from this package.
const page = "../../../../docs/serve.md"

func documented(t *testing.T) (text string, files []string) {
	t.Helper()
	read, err := os.ReadFile(page)
	if errors.Is(err, os.ErrNotExist) && os.Getenv("CI") == "" {
		t.Skip("docs/serve.md is not here: this module was built outside its repository")
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(read), "\n```yaml\n")[1:] {
		file, _, _ := strings.Cut(block, "\n```\n")
		files = append(files, file+"\n")
	}
	if len(files) != 3 {
		t.Fatalf("docs/serve.md has %d files, want one to begin with, one that reconciles, and one with every setting", len(files))
	}
	return string(read), files
}

// TestDocumentedFileStarts: the file to begin with is right as it stands.
func TestDocumentedFileStarts(t *testing.T) {
	_, files := documented(t)
	if _, err := fromYAML(t, files[0]); err != nil {
		t.Error(err)
	}
}

// TestDocumentedFile: every setting can be written in the file, and is shown.
func TestDocumentedFile(t *testing.T) {
	_, files := documented(t)
	s, err := parseYAML([]byte(files[2]))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range unset(s) {
		t.Errorf("docs/serve.md does not show %s", name)
	}
	route := reflect.TypeFor[RouteSettings]()
	for i := range route.NumField() {
		if name := route.Field(i).Tag.Get("yaml"); !strings.Contains(files[2], "  "+name+": ") && !strings.Contains(files[2], "- "+name+": ") {
			t.Errorf("docs/serve.md does not show the setting %s of a route", name)
		}
	}
}

// TestDocumentedMetrics: the series worth an alert exist.
func TestDocumentedMetrics(t *testing.T) {
	text, _ := documented(t)
	var source []byte
	for _, file := range []string{"metrics.go", "unsettled.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source = append(source, text...)
	}
	names := regexp.MustCompile("`(umavez_[a-z_]+)[{`]").FindAllStringSubmatch(text, -1)
	if len(names) < 5 {
		t.Errorf("docs/serve.md names only %d series: this test looks for the wrong thing", len(names))
	}
	for _, name := range names {
		if !strings.Contains(string(source), `"`+name[1]+`"`) {
			t.Errorf("docs/serve.md names %s, which does not exist", name[1])
		}
	}
}

// unset names the fields of the settings that are nil, those inside included.
func unset(s Settings) []string {
	names := unsetIn(reflect.ValueOf(s))
	if s.Limits != nil {
		names = append(names, unsetIn(reflect.ValueOf(*s.Limits))...)
	}
	return names
}

func unsetIn(v reflect.Value) []string {
	var names []string
	for i := range v.NumField() {
		if v.Field(i).IsNil() {
			names = append(names, v.Type().Name()+"."+v.Type().Field(i).Name)
		}
	}
	return names
}
