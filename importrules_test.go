package umavez_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// This file says which package may import which, and why, and checks it over
// every module of the tree. Data flows one way (bytes, request, key, claim,
// operation, answer, bytes), and so do the imports: a command may use everything,
// the engine nothing.

// layer is a place in the tree, and what of ours its code may import.
type layer struct {
	// at is a folder; the layer holds for everything below it too, but for the
	// root, ".", which is one package.
	at string
	// may names folders, by the same rule; "internal" means all below it, and
	// "*" everything. A layer may always import itself.
	may []string
	why string
}

// layers holds a row for every folder with code in it. A package that has no row
// fails the test: whoever adds one decides here where it stands.
var layers = []layer{
	{".", []string{"internal"}, "the engine is what all else stands on: " +
		"it is usable without HTTP and without any one store, and a cycle would start here"},
	{"internal/wire", nil, "client and server share it, so whatever it imports " +
		"becomes part of every client"},
	{"internal/groupcommit", []string{"."}, "of the engine the batcher knows how a failed write is told; " +
		"what a batch writes is each store's own"},
	{"keyring", nil, "it knows keys and bytes, and not what they are of: the engine takes " +
		"any sealer, and whoever reads this one has nothing else to read"},
	{"internal/leak", nil, "tests of every package use it"},
	{"internal/killtable", []string{"."}, "the table says what must follow a death over any store, " +
		"so it knows none of them"},
	{"umavezhttp", []string{".", "internal"}, "the middleware works over any store; " +
		"importing one would bring its driver into every program"},
	{"umavezgin", []string{".", "umavezhttp"}, "an adapter carries its framework, so it is a module of its own; " +
		"it has no rules of its own and knows no store"},
	{"umavezecho", []string{".", "umavezhttp"}, "as umavezgin"},
	{
		"umavezhttptest",
		[]string{".", "umavezhttp", "store/memstore", "internal"},
		"it serves the tests of programs that use umavezhttp, over the store in memory",
	},
	{"client", []string{"internal/wire"}, "a caller needs neither the engine nor a store; " +
		"only the words on the wire are shared"},
	{"proxy", []string{".", "umavezhttp", "internal"}, "the sidecar is the middleware in front of " +
		"a connection: it has no rules of its own, and is handed its store"},
	{"store/storetest", []string{".", "internal"}, "the suite holds every store to the contract, " +
		"so it knows none of them"},
	{"store", []string{".", "internal"}, "a store that used another one could not be " +
		"released, replaced or read by itself"},
	{"examples", []string{"*"}, "examples show the whole"},
	{"internal/interop", []string{"*"}, "its tests put the whole into other people's frameworks"},
	{"internal/browsertest", nil, "it sees what people see: the command that is built, and its page in a browser"},
	{"bench", []string{"*"}, "benchmarks compare the whole"},
	{"cmd", []string{"*"}, "the command is where everything is put together"},
}

// noTransport is what the engine must not reach, not even through a package of
// ours under internal.
var noTransport = []string{"net/http", "database/sql"}

// mayTest names the packages whose code outside test files may import testing,
// since they are there to be called from tests.
var mayTest = []string{"store/storetest", "umavezhttptest"}

// violation is a broken rule: which one, where, and why the rule is there.
type violation struct{ rule, where, why string }

// String puts the place first, where editors look for it.
func (v violation) String() string { return v.where + "\n\trule: " + v.rule + "\n\twhy:  " + v.why }

// checkImports holds made-up or real files against every rule on imports.
func checkImports(files []goFile) []violation {
	var found []violation
	for _, f := range files {
		for _, imported := range f.imports {
			report := func(rule, why string) {
				found = append(found, violation{rule, f.path() + ": imports " + imported, why})
			}
			checkLayer(f, imported, report)
			checkTesting(f, imported, report)
			checkRootModule(f, imported, report)
		}
	}
	return append(found, checkReach(files)...)
}

// checkLayer is the table above. Test files may import more than the code they
// test, with one exception: a store's tests know the suite and the reference
// store, and no other one.
func checkLayer(f goFile, imported string, report func(rule, why string)) {
	to, ours := folderOf(imported)
	if !ours {
		return
	}
	at := layerOf(f.dir)
	if at == nil {
		report("every package has a row in the table of layers", "a package without one could import anything")
		return
	}
	if f.isTest() {
		if isStore(f.dir) && isStore(to) && !within(to, f.dir) && !within(f.dir, to) && to != "store/memstore" {
			report("the tests of a store import no other one but memstore", "a store's module must not require another store's")
		}
		return
	}
	if within(to, at.at) && (at.at != "store" || within(to, storeOf(f.dir))) {
		return
	}
	for _, may := range at.may {
		if may == "*" || may == to || may != "." && within(to, may) {
			return
		}
	}
	report(fmt.Sprintf("%s may import, of ours, only %v", at.at, at.may), at.why)
}

func checkTesting(f goFile, imported string, report func(rule, why string)) {
	if f.isTest() || imported != "testing" && !strings.HasPrefix(imported, "testing/") {
		return
	}
	if slices.ContainsFunc(mayTest, func(may string) bool { return within(f.dir, may) }) {
		return
	}
	report("no testing outside test files", "it would register its flags in every program that imports this package")
}

func checkRootModule(f goFile, imported string, report func(rule, why string)) {
	if _, ours := folderOf(imported); ours || f.module != "." {
		return
	}
	if first, _, _ := strings.Cut(imported, "/"); strings.Contains(first, ".") {
		report("the root module uses the standard library only, in tests too",
			"whoever adds umavez to a program adds nothing else to its supply chain")
	}
}

// checkReach follows the root package's imports through ours, so that a package
// under internal is no way around the rule.
func checkReach(files []goFile) []violation {
	imports := map[string][]string{}
	for _, f := range files {
		if !f.isTest() {
			imports[f.dir] = append(imports[f.dir], f.imports...)
		}
	}
	var found []violation
	seen := map[string]bool{}
	var visit func(dir, by string)
	visit = func(dir, by string) {
		if seen[dir] {
			return
		}
		seen[dir] = true
		for _, imported := range imports[dir] {
			if slices.Contains(noTransport, imported) {
				found = append(found, violation{
					"the engine reaches neither net/http nor database/sql",
					by + " → " + imported,
					"a worker that reads a queue, or a program with a store of its own, carries neither",
				})
			}
			if to, ours := folderOf(imported); ours {
				visit(to, by+" → "+to)
			}
		}
	}
	visit(".", "root")
	return found
}

// folderOf returns the folder of a package of ours.
func folderOf(imported string) (dir string, ours bool) {
	if imported == ourModule {
		return ".", true
	}
	return strings.CutPrefix(imported, ourModule+"/")
}

// layerOf returns the first row that holds for a folder: narrower rows stand
// above wider ones.
func layerOf(dir string) *layer {
	for i := range layers {
		if layers[i].at == dir || layers[i].at != "." && within(dir, layers[i].at) {
			return &layers[i]
		}
	}
	return nil
}

// within reports whether dir is the folder at, or lies below it.
func within(dir, at string) bool { return dir == at || strings.HasPrefix(dir, at+"/") }

func isStore(dir string) bool {
	return strings.HasPrefix(dir, "store/") && !within(dir, "store/storetest")
}

// storeOf returns the folder of the store that a folder belongs to: store/NAME.
func storeOf(dir string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(dir, "store/"), "/")
	return "store/" + name
}

func TestImportRules(t *testing.T) {
	files, _ := loadTree(t)
	for _, v := range checkImports(files) {
		t.Error(v)
	}
	for _, f := range files {
		if layerOf(f.dir) == nil {
			t.Errorf("%s: its folder has no row in the table of layers", f.path())
		}
	}
}

// TestRootModuleRequiresNothing: what the source says, go.mod must say too.
func TestRootModuleRequiresNothing(t *testing.T) {
	_, modules := loadTree(t)
	for line := range strings.Lines(modules["."]) {
		switch word, _, _ := strings.Cut(strings.TrimSpace(line), " "); word {
		case "", "module", "go", "toolchain":
		default:
			t.Errorf("go.mod: %q: the root module requires nothing, so that whoever adds umavez adds nothing else", line)
		}
	}
}

// TestModulesAreNamedForTheirFolders: the rules above take folders for packages.
func TestModulesAreNamedForTheirFolders(t *testing.T) {
	_, modules := loadTree(t)
	for dir, text := range modules {
		want := ourModule
		if dir != "." {
			want += "/" + dir
		}
		if first, _, _ := strings.Cut(text, "\n"); first != "module "+want {
			t.Errorf("%s/go.mod: begins with %q, want %q", dir, first, "module "+want)
		}
	}
}

// brokenImports breaks every rule once. The rule's words are given as a part.
var brokenImports = []struct {
	name, file, module, imports, rule string
}{
	{"engine uses the middleware", "a.go", ".", ourModule + "/umavezhttp", ". may import"},
	{"engine uses a store", "a.go", ".", ourModule + "/store/memstore", ". may import"},
	{"engine uses net/http", "a.go", ".", "net/http", "neither net/http"},
	{"engine uses database/sql", "a.go", ".", "database/sql", "neither net/http"},
	{"engine uses net/http through internal", "a.go", ".", ourModule + "/internal/wire", "neither net/http"},
	{"store uses a store", "store/sqlitestore/a.go", "store/sqlitestore", ourModule + "/store/memstore", "store may import"},
	{"store's test uses a store", "store/pgstore/a_test.go", "store/pgstore", ourModule + "/store/sqlitestore", "no other one but memstore"},
	{"suite uses a store", "store/storetest/a.go", ".", ourModule + "/store/memstore", "storetest may import"},
	{"middleware uses a store", "umavezhttp/a.go", ".", ourModule + "/store/memstore", "umavezhttp may import"},
	{"middleware uses the sidecar", "umavezhttp/a.go", ".", ourModule + "/proxy", "umavezhttp may import"},
	{"adapter uses a store", "umavezgin/a.go", "umavezgin", ourModule + "/store/memstore", "umavezgin may import"},
	{"adapter uses another one", "umavezecho/a.go", "umavezecho", ourModule + "/umavezgin", "umavezecho may import"},
	{"test help uses the sidecar", "umavezhttptest/a.go", ".", ourModule + "/proxy", "umavezhttptest may import"},
	{"sidecar uses a store", "proxy/a.go", "proxy", ourModule + "/store/sqlitestore", "proxy may import"},
	{"sidecar uses the command", "proxy/a.go", "proxy", ourModule + "/cmd/umavez", "proxy may import"},
	{"client uses the engine", "client/a.go", ".", ourModule, "client may import"},
	{"client uses the middleware", "client/a.go", ".", ourModule + "/umavezhttp", "client may import"},
	{"wire uses the engine", "internal/wire/a.go", ".", ourModule, "internal/wire may import"},
	{"key ring uses the engine", "keyring/a.go", ".", ourModule, "keyring may import"},
	{"batcher uses the wire", "internal/groupcommit/a.go", ".", ourModule + "/internal/wire", "internal/groupcommit may import"},
	{"browser test uses the command", "internal/browsertest/a.go", "internal/browsertest", ourModule + "/cmd/umavez", "internal/browsertest may import"},
	{"a package nobody placed", "strange/a.go", ".", ourModule, "has a row"},
	{"testing in code", "proxy/a.go", "proxy", "testing", "no testing"},
	{"testing/synctest in code", "a.go", ".", "testing/synctest", "no testing"},
	{"a dependency of the root module", "umavezhttp/a.go", ".", "golang.org/x/sync/errgroup", "standard library only"},
	{"a dependency of its tests", "umavezhttp/a_test.go", ".", "github.com/stretchr/testify", "standard library only"},
}

// TestImportRulesCatch proves that each rule fails when it is broken.
func TestImportRulesCatch(t *testing.T) {
	wireWithHTTP := madeUp("internal/wire/a.go", ".", "net/http")
	for _, c := range brokenImports {
		t.Run(c.name, func(t *testing.T) {
			got := checkImports([]goFile{madeUp(c.file, c.module, c.imports), wireWithHTTP})
			if !slices.ContainsFunc(got, func(v violation) bool { return strings.Contains(v.rule, c.rule) }) {
				t.Errorf("%s importing %s broke no rule like %q; got %v", c.file, c.imports, c.rule, got)
			}
			for _, v := range got {
				if v.why == "" {
					t.Errorf("%v gives no reason", v)
				}
			}
		})
	}
}

// TestImportRulesAllow: the rules let through what the design wants.
func TestImportRulesAllow(t *testing.T) {
	allowed := []goFile{
		madeUp("a.go", ".", "context", ourModule+"/internal/wire"),
		madeUp("a_test.go", ".", "testing", "net/http", ourModule+"/store/memstore"),
		madeUp("internal/wire/a.go", ".", "strings"),
		madeUp("umavezhttp/a.go", ".", "net/http", ourModule, ourModule+"/internal/wire"),
		madeUp("umavezhttp/a_test.go", ".", "testing", ourModule+"/store/memstore"),
		madeUp("umavezgin/a.go", "umavezgin", "github.com/gin-gonic/gin", ourModule, ourModule+"/umavezhttp"),
		madeUp("umavezecho/a_test.go", "umavezecho", "testing", ourModule+"/store/memstore"),
		madeUp("umavezhttptest/a.go", ".", "testing", ourModule+"/umavezhttp"),
		madeUp("client/a.go", ".", "net/http", ourModule+"/internal/wire"),
		madeUp("proxy/a.go", ".", ourModule, ourModule+"/umavezhttp"),
		madeUp("store/storetest/a.go", ".", "testing", ourModule),
		madeUp("store/sqlitestore/a.go", "store/sqlitestore", "database/sql", "modernc.org/sqlite",
			ourModule, ourModule+"/internal/groupcommit", ourModule+"/store/sqlitestore/schema"),
		madeUp("store/sqlitestore/a_test.go", "store/sqlitestore", "testing",
			ourModule+"/store/storetest", ourModule+"/store/memstore", ourModule+"/store/sqlitestore"),
		madeUp("cmd/umavez/a.go", "cmd/umavez", "github.com/alecthomas/kong",
			ourModule+"/proxy", ourModule+"/store/sqlitestore"),
	}
	for _, v := range checkImports(allowed) {
		t.Error(v)
	}
}

// TestEveryLayerHasAReason: a rule without a reason is one that nobody dares to change.
func TestEveryLayerHasAReason(t *testing.T) {
	for _, l := range layers {
		if l.why == "" {
			t.Errorf("the layer %s gives no reason", l.at)
		}
	}
}

func madeUp(file, module string, imports ...string) goFile {
	dir, name := ".", file
	if i := strings.LastIndex(file, "/"); i >= 0 {
		dir, name = file[:i], file[i+1:]
	}
	return goFile{dir: dir, name: name, module: module, imports: imports}
}
