package supported

import (
	"bufio"
	"encoding/json"
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

func TestResults(t *testing.T) {
	r := Results{}
	require.NoError(t, r.ReadGo(strings.NewReader(`{"Action":"run","Package":"m/scanner","Test":"TestA"}
{"Action":"pass","Package":"m/scanner","Test":"TestA/sub"}
{"Action":"pass","Package":"m/scanner","Test":"TestA"}
{"Action":"fail","Package":"m/scanner","Test":"TestB"}
{"Action":"skip","Package":"m","Test":"TestC"}
{"Action":"pass","Package":"m/scanner"}
`), "m"))
	require.NoError(t, r.ReadCases(strings.NewReader(`[{"id":"g/t/a","status":"pass"},{"id":"g/t/b","status":"pass"},{"id":"g/u/a","status":"wrong"},{"id":"g/u/b","status":"pass"},{"id":"g/v-001","status":"pass"},{"id":"g/v-002","status":"pass"},{"id":"g/w-x-1","status":"wrong"}]`)))
	require.Equal(t, Results{"scanner.TestA": true, "scanner.TestB": false, ".TestC": false, "g/t": true, "g/u": false, "g/v": true, "g/w-x": false}, r)
	state, tests := r.shown(&feature{state: yes, tests: []string{"scanner.TestA", "g/t"}})
	require.Equal(t, "yes", state)
	require.Equal(t, "`scanner.TestA`, `g/t`", tests)
	for _, bad := range []string{"scanner.TestB", "g/u", "nowhere.TestX"} {
		state, _ = r.shown(&feature{state: yes, tests: []string{"scanner.TestA", bad}})
		require.Equal(t, "**not shown**", state)
	}
}

// TestNothingIsClaimedThatIsNotShown: the page as it stands claims every line. That it is what the results of a run say is checked by
// integration/run, which has them.
func TestNothingIsClaimedThatIsNotShown(t *testing.T) {
	all := Results{}
	for _, s := range sections {
		for _, f := range s.features {
			for _, name := range f.tests {
				all[name] = true
			}
		}
	}
	for _, f := range reports {
		for _, name := range f.tests {
			all[name] = true
		}
	}
	page, err := os.ReadFile(root + "/docs/SUPPORTED.md")
	require.NoError(t, err)
	require.Equal(t, Document(all), string(page), "run integration/run go conformance, then go run ./integration/supported --write with their results")
}
