package supported

import (
	"bufio"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write docs/SUPPORTED.md anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const root = "../.."

// goTests are the Go tests of the tree as folder.Name.
func goTests(t *testing.T) map[string]bool {
	out := map[string]bool{}
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules" || d.Name() == "target") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil {
				out[filepath.ToSlash(folder)+"."+fn.Name.Name] = true
			}
		}
		return err
	})
	require.NoError(t, err)
	return out
}

// conformanceTables are the tables that conformance cases read, as group/table.
func conformanceTables(t *testing.T) map[string]bool {
	files, err := filepath.Glob(root + "/integration/conformance/*.cases.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	out := map[string]bool{}
	for _, file := range files {
		f, err := os.Open(file)
		require.NoError(t, err)
		lines := bufio.NewScanner(f)
		const longest = 64 << 20
		lines.Buffer(nil, longest)
		for lines.Scan() {
			var c struct {
				Group  string   `json:"group"`
				Tables []string `json:"tables"`
			}
			require.NoError(t, json.Unmarshal(lines.Bytes(), &c), file)
			for _, table := range c.Tables {
				out[c.Group+"/"+table[strings.LastIndexByte(table, '.')+1:]] = true
			}
		}
		require.NoError(t, lines.Err())
		require.NoError(t, f.Close())
	}
	return out
}

func TestNamedTestsExist(t *testing.T) {
	tests, tables := goTests(t), conformanceTables(t)
	check := func(f feature) {
		if f.state != later {
			require.NotEmpty(t, f.tests, "%q names no test", f.name)
		}
		for _, name := range f.tests {
			if !tests[name] && !tables[name] {
				t.Errorf("%q: there is no test or case %s", f.name, name)
			}
		}
	}
	for _, s := range sections {
		for _, f := range s.features {
			check(f)
		}
	}
	const reported = 43
	require.Len(t, reports, reported)
	for _, f := range reports {
		check(f)
	}
}

func TestDocumentIsCurrent(t *testing.T) {
	const path = root + "/docs/SUPPORTED.md"
	want := document()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644)) //nolint:gosec // documentation is for everybody
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "run go test ./internal/supported -update")
}
