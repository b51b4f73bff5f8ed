package access

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/credentials"
	"github.com/skua-db/skua/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const example = `
roles:
  analysts: [ann]
  owners: [olga]
rules:
  - {roles: [owners], catalog: lake}
  - {catalog: lake, namespace: secret*, deny: true}
  - {roles: [analysts], catalog: lake, namespace: sales, table: orders, hide: [ssn], filter: "region = 'EU'", masks: {email: "'x'"}}
  - {roles: [analysts], catalog: lake, namespace: sales.*}
  - {principals: ["svc-*"], catalog: lake, namespace: a.b.c, table: t, columns: [id]}
  - {principals: [ann], catalog: files}
  - {catalog: files, deny: true}
`

func TestRules(t *testing.T) {
	p, err := Parse([]byte(example))
	require.NoError(t, err)
	ns := func(s ...string) catalog.Namespace { return s }
	ann, olga, svc := credentials.Caller{Name: "ann"}, credentials.Caller{Name: "olga"}, credentials.Caller{Name: "svc-1"}
	claimed := credentials.Caller{Name: "new", Roles: []string{"analysts"}}

	for _, c := range []struct {
		who   credentials.Caller
		cat   string
		ns    catalog.Namespace
		table string
		sees  string
	}{
		{olga, "lake", ns("secret"), "t", "all"}, {olga, "lake", ns("sales"), "orders", "all"}, {olga, "files", ns("x"), "t", "nothing"},
		{ann, "lake", ns("sales"), "orders", "part"}, {ann, "LAKE", ns("Sales"), "Orders", "part"}, {claimed, "lake", ns("sales"), "orders", "part"},
		{ann, "lake", ns("sales", "eu"), "t", "all"}, {ann, "lake", ns("sales"), "other", "nothing"}, {ann, "lake", ns("secret"), "t", "nothing"},
		{ann, "lake", ns("secrets", "x"), "t", "nothing"}, {ann, "files", ns("x"), "t", "all"}, {svc, "lake", ns("a", "b", "c"), "t", "part"},
		{svc, "lake", ns("a", "b", "c"), "u", "nothing"}, {svc, "lake", ns("a", "b"), "t", "nothing"}, {credentials.Caller{}, "lake", ns("sales"), "orders", "nothing"},
	} {
		a, ok := p.Table(c.who, c.cat, c.ns, c.table)
		got := "nothing"
		switch {
		case ok && a == nil:
			got = "all"
		case ok:
			got = "part"
		}
		require.Equal(t, c.sees, got, "%s %s.%s.%s", c.who.Name, c.cat, c.ns, c.table)
		if ok {
			require.True(t, p.Catalog(c.who, c.cat))
			for n := 1; n <= len(c.ns); n++ {
				require.True(t, p.Namespace(c.who, c.cat, c.ns[:n]), "%s %s.%s", c.who.Name, c.cat, c.ns[:n])
			}
		}
	}
	require.False(t, p.Namespace(ann, "lake", ns("secret")))
	require.False(t, p.Namespace(svc, "lake", ns("sales")))
	require.False(t, p.Namespace(svc, "lake", ns("a", "b", "c", "d")))
	require.False(t, p.Catalog(svc, "files"))
	require.True(t, p.Catalog(svc, "lake"))
	none, err := Parse(nil)
	require.NoError(t, err)
	require.False(t, none.Catalog(olga, "lake"), "without rules nobody sees anything")
}

func TestBadPolicies(t *testing.T) {
	for text, want := range map[string]string{
		"rules: [{tabel: x}]":                            "tabel",
		"rules: [{filter: 'a ='}]":                       "rule 1: filter",
		"rules: [{masks: {a: '('}}]":                     "mask of a",
		"rules: [{deny: true, hide: [a]}]":               "denies",
		"rules: [{}, {columns: [a], hide: [b]}]":         "rule 2: columns and hide",
		"roles: {a: b":                                   "policy",
		"rules: [{filter: 'a; drop table b'}]":           "filter",
		"rules: [{deny: true, deny: false, table: all}]": "policy",
	} {
		_, err := Parse([]byte(text))
		require.ErrorIs(t, err, fault.Invalid, text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestPolicyFileChanges(t *testing.T) {
	path := t.TempDir() + "/policy.yaml"
	write := func(text string) {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write("rules: [{catalog: lake}]")
	s, err := Open(path, zap.NewNop())
	require.NoError(t, err)
	again := func() *Policy {
		s.file.Look()
		return s.Policy()
	}
	first := s.Version()
	require.True(t, again().Catalog(credentials.Caller{}, "lake"))
	require.Equal(t, first, s.Version())
	write("rules: []")
	require.False(t, again().Catalog(credentials.Caller{}, "lake"))
	require.Greater(t, s.Version(), first)
	write("rules: [{catalog: 'lake', filter: '('}]")
	require.False(t, again().Catalog(credentials.Caller{}, "lake"), "a broken file leaves the last policy")
	require.NoError(t, os.Remove(path))
	require.False(t, again().Catalog(credentials.Caller{}, "lake"))
	_, err = Open(path, zap.NewNop())
	require.ErrorIs(t, err, fault.Invalid)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Parse(b)
		if err != nil {
			require.ErrorIs(t, err, fault.Invalid)
			return
		}
		c := credentials.Caller{Name: "ann", Roles: []string{"analysts"}}
		if _, ok := p.Table(c, "lake", catalog.Namespace{"a", "b"}, "t"); ok {
			require.True(t, p.Catalog(c, "lake"))
			require.True(t, p.Namespace(c, "lake", catalog.Namespace{"a"}))
			require.True(t, p.Namespace(c, "lake", catalog.Namespace{"a", "b"}))
		}
	})
}
