package umavez_test

import (
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/umavez/umavez/internal/wire"
)

// This file keeps the documents true where a machine can tell: the tests they
// name exist, each rule has a test, and links lead somewhere.

// testsOfTree returns the names of every test and fuzz target in the tree.
func testsOfTree(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	files, _ := loadTree(t)
	for _, f := range files {
		if !f.isTest() {
			continue
		}
		for _, fn := range f.funcs {
			if strings.HasPrefix(fn.name, "Test") || strings.HasPrefix(fn.name, "Fuzz") {
				names[fn.name] = true
			}
		}
	}
	return names
}

func readDoc(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// testName is a test's name as documents write it, in backticks. What follows a
// slash is a subtest, which only running it could find.
var testName = regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)(?:/[^`]*)?`")

// TestThreatModelNamesTestsThatExist: a threat that no test stops has no row.
func TestThreatModelNamesTestsThatExist(t *testing.T) {
	const doc = "docs/threat-model.md"
	tests := testsOfTree(t)
	rows := 0
	for i, line := range strings.Split(readDoc(t, doc), "\n") {
		named := testName.FindAllStringSubmatch(line, -1)
		for _, name := range named {
			if !tests[name[1]] {
				t.Errorf("%s:%d: there is no test %s", doc, i+1, name[1])
			}
		}
		if !isRow(line) {
			continue
		}
		rows++
		if len(named) == 0 {
			t.Errorf("%s:%d: the row names no test: %.60s", doc, i+1, line)
		}
	}
	if rows == 0 {
		t.Errorf("%s has no rows: this test looks for the wrong thing", doc)
	}
}

// isRow reports whether a line of Markdown is a row of a table, and neither its
// head nor the dashes under it.
func isRow(line string) bool {
	return strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| ---") && !strings.HasPrefix(line, "| who ")
}

// rule is the first cell of a row of docs/http.md.
var rule = regexp.MustCompile(`^\| ([KFRAP]\d+)( \(not yet\))? \|`)

// TestEveryHTTPRuleHasATest: rule K3 is held by a test whose name begins with
// TestK3_. A rule that is not there yet has none that could pass.
func TestEveryHTTPRuleHasATest(t *testing.T) {
	const doc = "docs/http.md"
	tests := testsOfTree(t)
	rules := 0
	for line := range strings.Lines(readDoc(t, doc)) {
		found := rule.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		rules++
		if found[2] != "" {
			continue
		}
		if !hasPrefix(tests, "Test"+found[1]+"_") {
			t.Errorf("%s: rule %s has no test: none is named Test%s_…", doc, found[1], found[1])
		}
	}
	if rules < 40 {
		t.Errorf("%s has only %d rules: this test looks for the wrong thing", doc, rules)
	}
}

func hasPrefix(names map[string]bool, prefix string) bool {
	for name := range names {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// problemRow is a row of the table of refusals in docs/http.md.
var problemRow = regexp.MustCompile("(?m)^\\| `([a-z-]+)`(?: \\(not yet\\))? \\| (\\d{3}) \\|")

// TestEveryProblemIsDocumented: the table of refusals has each code, and no other.
func TestEveryProblemIsDocumented(t *testing.T) {
	documented := map[string]string{}
	for _, row := range problemRow.FindAllStringSubmatch(readDoc(t, "docs/http.md"), -1) {
		documented[row[1]] = row[2]
	}
	for _, problem := range wire.ProblemTypes() {
		if got, want := documented[problem.Code], strconv.Itoa(problem.Status); got != want {
			t.Errorf("docs/http.md says %q for %s, which is %s", got, problem.Code, want)
		}
		delete(documented, problem.Code)
	}
	for code := range documented {
		t.Errorf("docs/http.md has a code %s that does not exist", code)
	}
}

// required is a direct dependency in a go.mod.
var required = regexp.MustCompile(`(?m)^(?:require )?\t?([a-z0-9.-]+\.[a-z]+/\S+) (v\S+)$`)

// dependencyRow is the beginning of a row in the table of dependencies.
var dependencyRow = regexp.MustCompile("\\| `([a-z0-9.-]+\\.[a-z]+/\\S+)` v")

// TestEveryDependencyHasItsReason: CONTRIBUTING.md names each direct dependency
// at the version that is used, and no other.
func TestEveryDependencyHasItsReason(t *testing.T) {
	const doc = "CONTRIBUTING.md"
	text := readDoc(t, doc)
	_, modules := loadTree(t)
	left := text
	for dir, mod := range modules {
		for _, found := range required.FindAllStringSubmatch(mod, -1) {
			if strings.HasPrefix(found[1], ourModule) {
				continue
			}
			row := "| `" + found[1] + "` " + found[2] + " | "
			if !strings.Contains(text, row) {
				t.Errorf("%s/go.mod requires %s %s, and %s has no row %q for it", dir, found[1], found[2], doc, row)
			}
			left = strings.ReplaceAll(left, row, "")
		}
	}
	for _, row := range dependencyRow.FindAllStringSubmatch(left, -1) {
		t.Errorf("%s has a row for %s, which no go.mod requires", doc, row[1])
	}
}

// link is a link of Markdown to a file of this tree.
var link = regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)

func TestLinksInDocumentsLead(t *testing.T) {
	err := walkTree(func(name string) error {
		if path.Ext(name) != ".md" {
			return nil
		}
		for _, found := range link.FindAllStringSubmatch(readDoc(t, name), -1) {
			if strings.Contains(found[1], "://") {
				continue
			}
			if _, err := os.Stat(path.Join(path.Dir(name), found[1])); err != nil {
				t.Errorf("%s: the link to %s leads nowhere: %v", name, found[1], err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
