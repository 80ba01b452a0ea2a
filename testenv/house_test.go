package testenv

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module        = "github.com/tallystick/tallystick/"
	funcLinesMax  = 70
	fileLinesMax  = 600
	everything    = "..."
	pureReplaceBy = "let time, randomness and what was read arrive as arguments"
)

// mayImport says for a package and those below it which packages of this project it may import. A
// package always may import those below its own row; the most specific row counts.
var mayImport = map[string][]string{
	"reconcile/stream":  {},
	"reconcile/compare": {"reconcile/stream"},
	"reconcile/join":    {"reconcile/stream", "reconcile/compare"},
	"reconcile/source":  {"reconcile/stream"},
	"reconcile": {
		"reconcile/stream", "reconcile/compare", "reconcile/join", "reconcile/source", "store",
	},
	"store":      {"reconcile/stream", "queries"},
	"queries":    {},
	"migrations": {},
	"testenv":    {"migrations", "reconcile/stream"},
	"cmd":        {everything},
}

// purePackages are functions of their inputs: these imports of the standard library would end that.
var purePackages = []string{"reconcile/join", "reconcile/compare", "reconcile/stream"}

var impureImports = []string{
	"context", "log", "log/slog", "math/rand", "math/rand/v2", "crypto/rand", "os", "os/exec",
	"net", "net/http", "sync", "sync/atomic", "io", "io/fs", "bufio", "syscall", "database/sql",
}

// impureTime are the parts of package time that read the clock; the rest only computes.
var impureTime = []string{
	"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick",
}

// ownSQL may hold statements in Go: the servers of tests, sources that build them from their
// configuration, and what migrations need before there is a schema.
var ownSQL = []string{"testenv", "reconcile/source/postgres", "migrations"}

// statement finds what begins like a statement and not like a sentence.
var statement = regexp.MustCompile(`(?is)^\s*(with\s+(recursive\s+)?\w+\s*(\([^)]*\)\s*)?as\b|` +
	`(select|insert\s+into|update|delete\s+from)\s.*\b` +
	`(from|into|set|as|values|select|exists|pg_\w+)\b)`)

// listed is what go list tells of a package.
type listed struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
}

// name gives the path inside the module.
func (p listed) name() string { return strings.TrimPrefix(p.ImportPath, module) }

func TestImportsFollowTheTable(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		row, allowed := tableRow(p.name())
		if row == "" {
			t.Errorf("package %s is in no row of mayImport: add it with what it may import", p.name())
			continue
		}
		for _, path := range p.Imports {
			imported, ours := strings.CutPrefix(path, module)
			if ours && !importAllowed(row, allowed, imported) {
				t.Errorf("package %s imports %s; it may import %v", p.name(), imported, allowed)
			}
		}
	}
}

func TestTableTellsRightFromWrong(t *testing.T) {
	t.Parallel()
	cases := []struct {
		from, to string
		want     bool
	}{
		{"store", "reconcile/join", false},
		{"store/digest", "reconcile/stream", true},
		{"reconcile/join", "store", false},
		{"reconcile/source/file", "reconcile/source", true},
		{"reconcile/source/file", "reconcile/join", false},
		{"reconcile", "reconcile/source/file", true},
		{"cmd/tally", "testenv", false},
		{"cmd/tally", "testenv/oracle", false},
		{"cmd/tally", "store", true},
	}
	for _, c := range cases {
		row, allowed := tableRow(c.from)
		if got := importAllowed(row, allowed, c.to); got != c.want {
			t.Errorf("%s may import %s: %v, want %v", c.from, c.to, got, c.want)
		}
	}
}

func TestPurePackagesStayPure(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		if !slices.Contains(purePackages, p.name()) {
			continue
		}
		for _, path := range p.Imports {
			if slices.Contains(impureImports, path) {
				t.Errorf("package %s imports %s: %s", p.name(), path, pureReplaceBy)
			}
		}
		eachFile(t, p, func(set *token.FileSet, file *ast.File) {
			ast.Inspect(file, func(n ast.Node) bool {
				if what := impurity(n); what != "" {
					t.Errorf("%s: %s: %s", set.Position(n.Pos()), what, pureReplaceBy)
				}
				return true
			})
		})
	}
}

func TestStatementsLiveInSQLFiles(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		if slices.ContainsFunc(ownSQL, func(root string) bool { return within(p.name(), root) }) {
			continue
		}
		eachFile(t, p, func(set *token.FileSet, file *ast.File) {
			ast.Inspect(file, func(n ast.Node) bool {
				if literal, ok := n.(*ast.BasicLit); ok && isStatement(literal) {
					t.Errorf("%s: SQL in Go: put the statement into a file under queries",
						set.Position(n.Pos()))
				}
				return true
			})
		})
	}
}

func TestFunctionsAndFilesStayShort(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		eachFile(t, p, func(set *token.FileSet, file *ast.File) {
			if lines := set.File(file.Pos()).LineCount(); lines > fileLinesMax {
				t.Errorf("%s has %d lines, more than %d: split it by responsibility",
					set.Position(file.Pos()).Filename, lines, fileLinesMax)
			}
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				lines := set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1
				if lines > funcLinesMax {
					t.Errorf("%s: function %s has %d lines, more than %d: keep the branches and "+
						"move straight-line work into helpers",
						set.Position(f.Pos()), f.Name.Name, lines, funcLinesMax)
				}
			}
		})
	}
}

// tableRow gives the most specific row of mayImport that covers the package.
func tableRow(name string) (row string, allowed []string) {
	for root, list := range mayImport {
		if within(name, root) && len(root) > len(row) {
			row, allowed = root, list
		}
	}
	return row, allowed
}

func importAllowed(row string, allowed []string, imported string) bool {
	if slices.Contains(allowed, everything) {
		return !within(imported, "testenv")
	}
	importedRow, _ := tableRow(imported)
	return importedRow == row || slices.Contains(allowed, importedRow)
}

func within(name, root string) bool {
	return name == root || strings.HasPrefix(name, root+"/")
}

func impurity(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "a goroutine"
	case *ast.SelectorExpr:
		pkg, ok := n.X.(*ast.Ident)
		if ok && pkg.Name == "time" && slices.Contains(impureTime, n.Sel.Name) {
			return "time." + n.Sel.Name
		}
	}
	return ""
}

func isStatement(literal *ast.BasicLit) bool {
	if literal.Kind != token.STRING {
		return false
	}
	text, err := strconv.Unquote(literal.Value)
	return err == nil && statement.MatchString(text)
}

// listPackages asks the go command for the packages of the module, without their tests.
func listPackages(t *testing.T) []listed {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list",
		"-json=ImportPath,Dir,GoFiles,Imports", module+"...")
	out, err := command.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	var packages []listed
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		if err != nil {
			t.Fatalf("read the answer of go list: %v", err)
		}
		packages = append(packages, p)
	}
}

func eachFile(t *testing.T, p listed, visit func(*token.FileSet, *ast.File)) {
	t.Helper()
	for _, name := range p.GoFiles {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		visit(set, file)
	}
}
