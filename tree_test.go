package umavez_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"
)

// ourModule is the path of the root module. Every other module of this tree is
// named for the folder it lies in, below it.
const ourModule = "github.com/umavez/umavez"

// goFile is one Go file of the tree, as far as the rules of the house look at it.
type goFile struct {
	// dir is slash-separated and relative to the root of the tree, which is ".".
	dir  string
	name string
	// module is the folder of the go.mod that the file belongs to.
	module  string
	imports []string
	lines   int
	funcs   []goFunc
	// sleeps are the lines that name time.Sleep.
	sleeps []int
	// calls are the functions of its own package that the file calls.
	calls []string
}

// goFunc is one function declaration: its name, and how many lines it takes
// from "func" to its closing brace.
type goFunc struct {
	name        string
	first, size int
	// bubble: it runs something in virtual time.
	bubble bool
}

// path returns where the file lies, relative to the root of the tree.
func (f goFile) path() string { return path.Join(f.dir, f.name) }

// isTest reports whether the file is compiled for tests only.
func (f goFile) isTest() bool { return strings.HasSuffix(f.name, "_test.go") }

// walkTree calls visit for every file of the tree that is, or could be,
// committed. It reads the folder and not git's index, so that it works in a
// copy without a history, and so that a new file is held to the rules before
// it is committed.
func walkTree(t *testing.T, visit func(name string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch d.Name() {
			case ".git", "node_modules":
				return fs.SkipDir
			}
			if name == "bin" { // what the Makefile installs; git ignores it
				return fs.SkipDir
			}
			return nil
		}
		if d.Type().IsRegular() {
			visit(name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// loadTree parses every Go file of every module in the tree. It parses and does
// not build, so files for other systems and build tags are held to the same
// rules, and a module whose dependencies are not there can be looked at too.
func loadTree(t *testing.T) (files []goFile, modules map[string]string) {
	t.Helper()
	modules = map[string]string{}
	walkTree(t, func(name string) {
		switch {
		case path.Base(name) == "go.mod":
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			modules[path.Dir(name)] = string(text)
		case strings.HasSuffix(name, ".go") && !strings.Contains(name, "testdata/"):
			files = append(files, parseGo(t, name))
		}
	})
	if len(files) == 0 || modules["."] == "" {
		t.Fatal("found no Go files or no go.mod: this test must run in the root folder")
	}
	for i := range files {
		files[i].module = moduleOf(files[i].dir, modules)
	}
	return files, modules
}

// moduleOf returns the folder of the nearest go.mod at or above dir.
func moduleOf(dir string, modules map[string]string) string {
	for dir != "." && modules[dir] == "" {
		dir = path.Dir(dir)
	}
	return dir
}

func parseGo(t *testing.T, name string) goFile {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return parseSource(t, name, text)
}

func parseSource(t *testing.T, name string, text []byte) goFile {
	t.Helper()
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatalf("cannot parse: %v", err)
	}
	f := goFile{dir: path.Dir(name), name: path.Base(name), lines: bytes.Count(text, []byte("\n"))}
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatalf("%s: import %s: %v", name, spec.Path.Value, err)
		}
		f.imports = append(f.imports, imported)
	}
	for _, decl := range parsed.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok {
			first, last := fset.Position(fn.Pos()).Line, fset.Position(fn.End()).Line
			bubble := len(uses(fset, fn, "synctest", "Test")) > 0
			f.funcs = append(f.funcs, goFunc{name: fn.Name.Name, first: first, size: last - first + 1, bubble: bubble})
		}
	}
	f.sleeps = uses(fset, parsed, "time", "Sleep")
	ast.Inspect(parsed, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if fn, ok := call.Fun.(*ast.Ident); ok {
				f.calls = append(f.calls, fn.Name)
			}
		}
		return true
	})
	return f
}

// uses returns the lines below n that name pkg.name.
func uses(fset *token.FileSet, n ast.Node, pkg, name string) (lines []int) {
	ast.Inspect(n, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == name {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == pkg {
				lines = append(lines, fset.Position(sel.Pos()).Line)
			}
		}
		return true
	})
	return lines
}
