package umavez_test

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
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
func walkTree(visit func(name string) error) error {
	return fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // other tests make files and remove them while this one looks
		}
		if err != nil {
			return err
		}
		if d.IsDir() {
			// bin is what the scripts install; git ignores it.
			if d.Name() == ".git" || d.Name() == "node_modules" || name == "bin" {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		if err := visit(name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

// tree is every Go file of every module, and the text of each go.mod by its
// folder. It parses and does not build, so files for other systems and build
// tags are held to the same rules, and a module whose dependencies are not there
// can be looked at too.
type tree struct {
	files   []goFile
	modules map[string]string
}

var readTree = sync.OnceValues(func() (tree, error) {
	found := tree{modules: map[string]string{}}
	err := walkTree(func(name string) error {
		isMod := path.Base(name) == "go.mod"
		if !isMod && path.Ext(name) != ".go" || strings.Contains(name, "testdata/") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if isMod {
			found.modules[path.Dir(name)] = string(text)
			return nil
		}
		f, err := parseSource(name, text)
		found.files = append(found.files, f)
		return err
	})
	for i := range found.files {
		found.files[i].module = moduleOf(found.files[i].dir, found.modules)
	}
	return found, err
})

// loadTree returns the tree, which is read once.
func loadTree(t *testing.T) (files []goFile, modules map[string]string) {
	t.Helper()
	found, err := readTree()
	if err != nil {
		t.Fatal(err)
	}
	if len(found.files) == 0 || found.modules["."] == "" {
		t.Fatal("found no Go files or no go.mod: this test must run in the root folder")
	}
	return found.files, found.modules
}

// moduleOf returns the folder of the nearest go.mod at or above dir.
func moduleOf(dir string, modules map[string]string) string {
	for dir != "." && modules[dir] == "" {
		dir = path.Dir(dir)
	}
	return dir
}

func parseSource(name string, text []byte) (goFile, error) {
	f := goFile{dir: path.Dir(name), name: path.Base(name), lines: bytes.Count(text, []byte("\n"))}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
	if err != nil {
		return f, err
	}
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return f, err
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
	return f, nil
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
