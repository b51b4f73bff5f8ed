package config

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func load(t *testing.T, text string, environ ...string) (*Loaded, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "skua.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return Load(path, environ)
}

func TestLoad(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("sixteen bytes and more\n"), 0o600))
	l, err := load(t, `
listen: {flight: "127.0.0.1:9000"}
auth:
  tokens: [{name: etl, secret: "${file:`+secret+`}"}]
catalogs:
  lake: {properties: {warehouse: /data}}
  files: {type: registered, tables: {a.b: /x/metadata/v1.metadata.json}}
limits: {memory: 2GiB, query: {time: 15m}}
`, "SKUA__LIMITS__QUERY__MEMORY=25%", "PATH=/bin")
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:9000", l.Listen.Flight)
	require.Equal(t, "sixteen bytes and more", l.Auth.Tokens[0].Secret)
	require.Equal(t, "hadoop", l.Catalogs["lake"].Type)
	require.Equal(t, 15*time.Minute, l.Limits.Query.Time)
	require.EqualValues(t, 512<<20, l.Limits.Query.Memory.Of(l.Limits.Memory.Of(MachineMemory())))
	require.NoError(t, l.Check())
	require.Empty(t, l.Warnings)
	require.Equal(t, "SKUA__LIMITS__QUERY__MEMORY", l.Origins["limits.query.memory"])
	require.True(t, strings.HasSuffix(l.Origins["limits.memory"], "skua.yaml:8"), l.Origins["limits.memory"])
	var out bytes.Buffer
	require.NoError(t, l.Show(&out, true))
	require.NotContains(t, out.String(), "sixteen")
	require.Contains(t, out.String(), "auth.tokens[0].secret: «redacted»")
	require.Contains(t, out.String(), "limits.memory: 2GiB")
}

// TestFaults loads a text and wants every sentence that is wrong with it, with file and line.
func TestFaults(t *testing.T) {
	cases := []struct {
		name, text string
		environ    []string
		want       []string
	}{
		{"unknown key with the nearest", "limits:\n  memroy: 2GiB\n", nil, []string{"skua.yaml:2: limits.memroy is not a setting; did you mean memory?"}},
		{"all at once", "listne: {}\nlimits: {memory: 12, workers: many}\n", nil, []string{"skua.yaml:1: listne", "limits.memory: \"12\" is not a size", "limits.workers"}},
		{"a key twice", "auth: {anonymous: true, anonymous: true}\n", nil, []string{"skua.yaml:1: auth.anonymous stands twice"}},
		{"wrong shape", "catalogs: [a]\nauth: {tokens: x}\n", nil, []string{"catalogs takes a mapping", "auth.tokens takes a list"}},
		{"no such variable", "auth: {users_file: \"${env:SKUA_TEST_NOT_SET}\"}\n", nil, []string{"environment variable SKUA_TEST_NOT_SET is not set"}},
		{"typing error in the environment", "", []string{"SKUA__LIMITS__MEMROY=1GiB", "SKUA__CATALOGS=x"}, []string{"SKUA__LIMITS__MEMROY: limits.memroy is not a setting; did you mean memory?", "SKUA__CATALOGS: catalogs is not a single value"}},
		{"broken YAML", "a: [", nil, []string{"skua.yaml:1: did not find"}},
		{"a tab", "limits:\n\tmemory: 1GiB\n", nil, []string{"skua.yaml:2: found character"}},
		{"no mapping", "- a\n", nil, []string{"skua.yaml:1: the file takes a mapping"}},
		{"the beginning of a key", "tls: {cert: x}\n", nil, []string{"did you mean cert_file?"}},
		{"nothing near", "foo: x\n", nil, []string{"foo is not a setting; there are auth, caches"}},
		{"a negative number", "limits: {workers: -1}", nil, []string{"limits.workers: \"-1\" is not a whole number from 0"}},
		{"not a duration", "limits: {query: {time: 30}}", nil, []string{"limits.query.time: \"30\" is not a duration"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := load(t, c.text, c.environ...)
			require.ErrorIs(t, err, fault.Invalid)
			for _, w := range c.want {
				require.ErrorContains(t, err, w)
			}
		})
	}
	_, err := Load("/does/not/exist.yaml", nil)
	require.ErrorContains(t, err, "/does/not/exist.yaml")
}

func TestCheck(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"nobody could connect", "catalogs: {a: {properties: {warehouse: /x}}}", "auth: nobody could connect"},
		{"anonymous to the world", "listen: {flight: \"0.0.0.0:7470\"}\nauth: {anonymous: true}", "auth.anonymous: is allowed on loopback only"},
		{"plaintext to the world", "listen: {flight: \"0.0.0.0:7470\"}", "would be plaintext for others too"},
		{"half a certificate", "tls: {cert_file: /x}", "cert_file and key_file go together"},
		{"no catalog", "auth: {anonymous: true}", "catalogs: there is none"},
		{"a name with a dot", "catalogs: {a.b: {properties: {warehouse: /x}}}", "catalogs.a.b: a catalog's name has letters"},
		{"an unknown type", "catalogs: {a: {type: hive2}}", "\"hive2\" is not known; there are glue, hadoop, registered, rest and sql"},
		{"a property of another catalog", "catalogs: {a: {properties: {warehouse: /x, uri: http://x}}}", "uri is not a property of a hadoop catalog"},
		{"a rest catalog without an address", "catalogs:\n  a:\n    type: rest\n    properties: {warehouse: w}", "skua.yaml:4: catalogs.a.properties: uri is missing"},
		{"a rest catalog at no address", "catalogs:\n  a:\n    type: rest\n    properties:\n      uri: host:8181", "skua.yaml:5: catalogs.a.properties.uri: is not an http or https URL"},
		{"a typing error in a property", "catalogs:\n  a:\n    type: rest\n    properties:\n      uri: http://h\n      warehose: w", "skua.yaml:6: catalogs.a.properties.warehose: is not a property of a rest catalog; did you mean warehouse?"},
		{"neither true nor false", "catalogs:\n  a:\n    type: rest\n    properties:\n      uri: http://h\n      ambient-fallback: yes", "skua.yaml:6: catalogs.a.properties.ambient-fallback: \"yes\" is neither true nor false"},
		{"two identities", "catalogs:\n  a:\n    type: rest\n    properties:\n      uri: http://h\n      token: x\n      credential: y", "skua.yaml:6: catalogs.a.properties.token: goes not with credential"},
		{"tables of a rest catalog", "catalogs: {a: {type: rest, properties: {uri: http://h}, tables: {a.b: /x}}}", "tables belong to a registered catalog; this one is rest"},
		{"a relative warehouse", "catalogs:\n  a:\n    properties: {warehouse: data}", "skua.yaml:3: catalogs.a.properties.warehouse: \"data\" is not an absolute path"},
		{"a table without a namespace", "catalogs: {a: {type: registered, tables: {orders: /x.json}}}", "skua.yaml:1: catalogs.a.tables.orders: a table's name is of the form namespace.table"},
		{"where it stands", "auth: {anonymous: true}\nlisten:\n  flight: nonsense\n", "skua.yaml:3: listen.flight: \"nonsense\" is not host:port"},
		{"a default that is not there", "default: {catalog: b}\ncatalogs: {a: {properties: {warehouse: /x}}}", "\"b\" is not among the catalogs a"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l, err := load(t, c.text)
			require.NoError(t, err)
			require.ErrorContains(t, l.Check(), c.want)
		})
	}
}

func TestSecretsOfARestCatalogAreNotShown(t *testing.T) {
	l, err := load(t, "catalogs: {a: {type: rest, properties: {uri: http://h, credential: \"id:hidden1\", token: hidden2, s3.access-key-id: hidden3, s3.secret-access-key: hidden4, s3.session-token: hidden5, header.Authorization: hidden6}}}")
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, l.Show(&out, true))
	require.Contains(t, out.String(), "uri: http://h")
	require.NotContains(t, out.String(), "hidden")
	require.NotContains(t, l.Check().Error(), "hidden")
	require.Len(t, l.Warnings, 6, "secrets that stand in the file itself")
}

func TestAmounts(t *testing.T) {
	for text, want := range map[string]int64{"512MiB": 512 << 20, "1.5GiB": 3 << 29, "40%": 400, "10B": 10, "2kB": 2000} {
		a, err := ParseAmount(text)
		require.NoError(t, err, text)
		require.Equal(t, want, a.Of(1000), text)
	}
	for _, bad := range []string{"", "12", "x", "-1GiB", "0%", "101%", "GiB", "9e99TiB"} {
		_, err := ParseAmount(bad)
		require.Error(t, err, bad)
	}
	a, _ := ParseAmount("1.5GiB")
	require.Equal(t, "1536MiB", a.String())
}

func TestDocsNameEverySetting(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, Docs(&out))
	for _, key := range []string{"listen.flight", "catalogs.<name>.location_mapping", "auth.tokens[].secret", "limits.query.memory"} {
		require.Contains(t, out.String(), key)
	}
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		require.True(t, strings.HasSuffix(line, ".") || strings.HasSuffix(line, ")"), "%s has no sentence", line)
	}
}

func TestIdentitySettings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "skua.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`
catalogs: {lake: {properties: {warehouse: /tmp, encryption.kms-type: vault, vault.url: "https://vault:8200", vault.token: t}}}
tls: {self_signed: true, client_ca_file: /etc/ca.pem}
auth:
  oidc: [{issuer: "https://id.example", audience: [skua]}]
  certificates: [{subject: "CN=*"}]
encryption: {accept: [plain-files]}
`), 0o600))
	c, err := Load(path, nil)
	require.NoError(t, err)
	require.NoError(t, c.Check())
	require.Equal(t, OIDC{Issuer: "https://id.example", Audience: []string{"skua"}, PrincipalClaim: "sub", ClockSkew: 30 * time.Second}, c.Auth.OIDC[0])
	require.Equal(t, Subject{"CN=*", "$CN"}, c.Auth.Subjects[0])
	require.True(t, c.Encryption.Risks().PlainFiles)
	require.Equal(t, map[string]string{"warehouse": "/tmp"}, c.Catalogs["lake"].OwnProperties())
	s, ok := c.Encryption.KMS.Settings(c.Catalogs["lake"].Properties)
	require.True(t, ok)
	require.Equal(t, "vault", s.Kind)
	require.Equal(t, "https://vault:8200", s.Properties["vault.url"])

	for text, want := range map[string]string{
		"auth: {oidc: [{issuer: 'http://id.example', audience: [a]}]}": "no https URL",
		"auth: {oidc: [{issuer: 'https://id.example'}]}":               "audience",
		"auth: {certificates: [{subject: a}]}":                         "client_ca_file",
		"tls: {client_auth: sometimes}":                                "client_auth",
		"encryption: {accept: [everything]}":                           "everything",
		"encryption: {kms: {type: aws}}":                               "client.region",
		"encryption: {kms: {properties: {a: b}}}":                      "encryption.kms.type",
		"encryption: {kms: {key_life: 0s}}":                            "key_life",
		"auth: {policy_file: /nowhere}":                                "policy_file",
	} {
		require.NoError(t, os.WriteFile(path, []byte("catalogs: {lake: {properties: {warehouse: /tmp}}}\n"+text), 0o600))
		c, err := Load(path, nil)
		require.NoError(t, err, text)
		require.ErrorContains(t, c.Check(), want, text)
	}
}
