// Package lint keeps the house rules that a machine can keep: which package imports which, bans with their reasons,
// package comments, file sizes and test mains. The rules are data in testdata.
//
// It holds tests only.
package lint

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/skua-db/skua/"

// pkg is a package of the tree with its product and test files parsed as far as the rules need.
type pkg struct {
	path         string // below the module
	files, tests map[string]*ast.File
}

func packages(t *testing.T) map[string]*pkg {
	t.Helper()
	root := "../.."
	out := map[string]*pkg{}
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" || name == "build") {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); path != root && err == nil {
				return filepath.SkipDir // a module of its own
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		p := out[filepath.ToSlash(rel)]
		if p == nil {
			p = &pkg{path: filepath.ToSlash(rel), files: map[string]*ast.File{}, tests: map[string]*ast.File{}}
			out[p.path] = p
		}
		if strings.HasSuffix(name, "_test.go") {
			p.tests[path] = f
		} else {
			p.files[path] = f
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, len(out), 10, "the tree was not found")
	return out
}

func lines(t *testing.T, file string) []string {
	t.Helper()
	raw, err := os.Open(filepath.Join("testdata", file))
	require.NoError(t, err)
	defer func() { require.NoError(t, raw.Close()) }()
	var out []string
	for s := bufio.NewScanner(raw); s.Scan(); {
		if line := strings.TrimSpace(s.Text()); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

func matches(pattern, path string) bool {
	if pattern == "*" || pattern == path {
		return true
	}
	base, ok := strings.CutSuffix(pattern, "/...")
	return ok && (path == base || strings.HasPrefix(path, base+"/"))
}

func imports(f *ast.File) []string {
	var out []string
	for _, i := range f.Imports {
		out = append(out, strings.Trim(i.Path.Value, `"`))
	}
	return out
}

// TestImportsPointDownwards checks the layers of DESIGN section 1.
func TestImportsPointDownwards(t *testing.T) {
	layers := lines(t, "imports.txt")
	layer := func(path string) int {
		for i, l := range layers {
			for _, pattern := range strings.Fields(l) {
				if matches(pattern, path) {
					return i
				}
			}
		}
		return -1
	}
	for _, p := range packages(t) {
		if strings.HasPrefix(p.path, "internal/") || strings.HasPrefix(p.path, "integration") || strings.HasSuffix(p.path, "test") {
			continue
		}
		mine := layer(p.path)
		if mine < 0 {
			t.Errorf("package %s has no layer in testdata/imports.txt", p.path)
			continue
		}
		for file, f := range p.files {
			for _, imp := range imports(f) {
				target, ours := strings.CutPrefix(imp, module)
				if !ours {
					continue
				}
				if theirs := layer(target); theirs < mine {
					t.Errorf("%s: %s may not import %s, which is on a higher layer", file, p.path, target)
				}
			}
		}
	}
}

func TestBans(t *testing.T) {
	for _, line := range lines(t, "bans.txt") {
		parts := strings.SplitN(line, "|", 3)
		require.Len(t, parts, 3, line)
		pattern, banned, reason := parts[0], parts[1], parts[2]
		pattern, except := strings.CutPrefix(pattern, "!")
		exact := strings.HasSuffix(banned, "$")
		banned = strings.TrimSuffix(banned, "$")
		for _, p := range packages(t) {
			if matches(pattern, p.path) == except || strings.HasPrefix(p.path, "internal/") || strings.HasPrefix(p.path, "integration") {
				continue
			}
			for file, f := range p.files {
				for _, imp := range imports(f) {
					if imp == banned || !exact && strings.HasPrefix(imp, banned+"/") {
						t.Errorf("%s imports %s: %s", file, imp, reason)
					}
				}
			}
		}
	}
}

// TestPackageComments wants each package to say what it is for and its concurrency rule, in one comment.
func TestPackageComments(t *testing.T) {
	for _, p := range packages(t) {
		doc := ""
		for _, files := range []map[string]*ast.File{p.files, p.tests} {
			for _, f := range files {
				if f.Doc != nil && len(f.Doc.Text()) > len(doc) {
					doc = f.Doc.Text()
				}
			}
		}
		if len(doc) < 80 || !strings.HasPrefix(doc, "Package ") && !strings.HasPrefix(doc, "Command ") {
			t.Errorf("package %s has no package comment that says what it is for: %q", p.path, doc)
		}
	}
}

// TestLeakChecks wants every package with tests to end them with a leak check.
func TestLeakChecks(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.tests) == 0 || p.path == "internal/lint" {
			continue
		}
		found := false
		for file := range p.tests {
			raw, err := os.ReadFile(file)
			require.NoError(t, err)
			found = found || strings.Contains(string(raw), "goleak.VerifyTestMain") || strings.Contains(string(raw), "goleak.Find(")
		}
		if !found {
			t.Errorf("the tests of %s have no TestMain with goleak", p.path)
		}
	}
}

// TestNoSkippedTests wants every test to run everywhere.
func TestNoSkippedTests(t *testing.T) {
	for _, p := range packages(t) {
		if p.path == "internal/lint" {
			continue
		}
		for file := range p.tests {
			raw, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, word := range []string{"t.Skip", "b.Skip", "testing.Short("} {
				if strings.Contains(string(raw), word) {
					t.Errorf("%s has %s: a test that does not run shows nothing", file, word)
				}
			}
		}
	}
}

// vagueNames are package names that say nothing about what is inside.
var vagueNames = []string{"util", "utils", "common", "helper", "helpers", "manager", "misc", "shared"}

func TestNames(t *testing.T) {
	for _, p := range packages(t) {
		for _, vague := range vagueNames {
			if filepath.Base(p.path) == vague {
				t.Errorf("package %s: %s is not a noun of the field", p.path, vague)
			}
		}
	}
}
