package config

import (
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"regexp"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/skua-db/skua/access"
	"github.com/skua-db/skua/catalog/rest"
	"github.com/skua-db/skua/fault"
)

var catalogName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// Check proves what can be proved without starting: files exist, the certificate fits its key, names are legal, nothing
// is open to the network by accident. All faults are told at once.
func (l *Loaded) Check() error {
	c := &l.Config
	var faults []string
	fail := func(key, format string, args ...any) {
		where := ""
		if o, ok := l.Origins[key]; ok && o != "default" {
			where = o + ": "
		}
		faults = append(faults, where+key+": "+fmt.Sprintf(format, args...))
	}
	host, port, err := net.SplitHostPort(c.Listen.Flight)
	if err != nil {
		fail("listen.flight", "%q is not host:port", c.Listen.Flight)
	} else if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		fail("listen.flight", "port %q is not between 0 and 65535 (%d)", port, n)
	}
	loopback := isLoopback(host)
	switch {
	case (c.TLS.CertFile == "") != (c.TLS.KeyFile == ""):
		fail("tls", "cert_file and key_file go together")
	case c.TLS.CertFile != "":
		if _, err := tls.LoadX509KeyPair(c.TLS.CertFile, c.TLS.KeyFile); err != nil {
			fail("tls", "%v", err)
		}
	case c.TLS.SelfSigned:
	case !loopback && !c.TLS.Insecure:
		fail("tls", "without cert_file and key_file the port at %s would be plaintext for others too; set them, listen on 127.0.0.1, or set tls.insecure", c.Listen.Flight)
	}
	secure := c.TLS.CertFile != "" || c.TLS.SelfSigned
	switch {
	case c.TLS.SelfSigned && c.TLS.CertFile != "":
		fail("tls.self_signed", "and cert_file exclude each other")
	case c.TLS.ClientAuth != "optional" && c.TLS.ClientAuth != "required":
		fail("tls.client_auth", "%q is neither optional nor required", c.TLS.ClientAuth)
	case c.TLS.ClientCAs == "" && (c.TLS.ClientAuth == "required" || len(c.Auth.Subjects) > 0):
		fail("tls.client_ca_file", "is missing: it says whose client certificates are taken")
	case c.TLS.ClientCAs != "" && !secure:
		fail("tls.client_ca_file", "needs cert_file and key_file: without TLS there are no client certificates")
	}
	for i, s := range c.Auth.Subjects {
		if s.Subject == "" || s.Principal == "" {
			fail(fmt.Sprintf("auth.certificates[%d]", i), "needs a subject and a principal")
		}
	}
	for i, o := range c.Auth.OIDC {
		key := fmt.Sprintf("auth.oidc[%d]", i)
		u, err := url.Parse(o.Issuer)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())):
			fail(key+".issuer", "%q is no https URL", o.Issuer)
		case len(o.Audience) == 0:
			fail(key+".audience", "is missing: a token for another service would let its bearer in")
		}
	}
	if c.TLS.MinVersion != "1.2" && c.TLS.MinVersion != "1.3" {
		fail("tls.min_version", "%q is neither 1.2 nor 1.3", c.TLS.MinVersion)
	}
	if c.Auth.Anonymous && !loopback {
		fail("auth.anonymous", "is allowed on loopback only, and listen.flight is %s", c.Listen.Flight)
	}
	if len(c.Catalogs) > 0 && !c.Auth.Anonymous && c.Auth.UsersFile == "" && len(c.Auth.Tokens) == 0 && len(c.Auth.OIDC) == 0 && len(c.Auth.Subjects) == 0 {
		fail("auth", "nobody could connect; set users_file, tokens, oidc or certificates, or anonymous: true on loopback")
	}
	for i, t := range c.Auth.Tokens {
		if t.Name == "" || len(t.Secret) < 16 {
			fail(fmt.Sprintf("auth.tokens[%d]", i), "needs a name and a secret of at least 16 characters")
		}
	}
	if f := c.Auth.PolicyFile; f != "" {
		if _, err := access.Open(f, zap.NewNop()); err != nil {
			fail("auth.policy_file", "%v", err)
		}
	}
	for i, k := range c.Auth.TicketKeys {
		if k.ID == "" || len(k.Secret) < 16 {
			fail(fmt.Sprintf("auth.ticket_keys[%d]", i), "needs an id and a secret of at least 16 characters")
		}
	}
	if len(c.Catalogs) == 0 {
		fail("catalogs", "there is none, so there is nothing to read; give --catalog name=folder, or a configuration file with catalogs")
	}
	for _, name := range c.CatalogNames() {
		c.Catalogs[name].check(name, fail)
	}
	c.Encryption.check(fail)
	if d := c.Default.Catalog; d != "" {
		if _, ok := c.Catalogs[d]; !ok {
			fail("default.catalog", "%q is not among the catalogs %s", d, strings.Join(c.CatalogNames(), ", "))
		}
	}
	if d := c.Limits.Spill.Dir; d != "" {
		if st, err := os.Stat(d); err != nil || !st.IsDir() {
			fail("limits.spill.dir", "%s is not a folder", d)
		}
	}
	c.Limits.check(fail)
	switch c.Observability.Statements.Log {
	case "slow", "all", "none":
	default:
		fail("observability.statements.log", "%q is none of slow, all, none", c.Observability.Statements.Log)
	}
	switch c.Observability.Log.Level {
	case "debug", "info", "warn", "error":
	default:
		fail("observability.log.level", "%q is none of debug, info, warn, error", c.Observability.Log.Level)
	}
	switch c.Observability.Log.Format {
	case "json", "text", "auto":
	default:
		fail("observability.log.format", "%q is none of json, text, auto", c.Observability.Log.Format)
	}
	if len(faults) > 0 {
		return fault.New(fault.Invalid, "%s", strings.Join(faults, "\n"))
	}
	return nil
}

func (c Catalog) check(name string, fail func(key, format string, args ...any)) {
	key := "catalogs." + name
	if !catalogName.MatchString(name) {
		fail(key, "a catalog's name has letters, digits and underscores, and begins with no digit")
	}
	own := c.OwnProperties()
	absolute := func(key, path string) {
		if path != "" && !strings.HasPrefix(path, "/") && !strings.Contains(path, ":") {
			fail(key, "%q is not an absolute path", path)
		}
	}
	for _, p := range c.AllowedPrefixes {
		absolute(key+".allowed_prefixes", p)
	}
	for from, to := range c.LocationMapping {
		absolute(key+".location_mapping."+from, to)
	}
	switch c.Type {
	case "hadoop":
		if c.Properties["warehouse"] == "" {
			fail(key, "a hadoop catalog needs properties.warehouse")
		}
		absolute(key+".properties.warehouse", c.Properties["warehouse"])
		c.known(key, own, fail)
	case "glue":
		c.known(key, own, fail)
		if own["client.region"] == "" && own["glue.region"] == "" {
			fail(key, "a glue catalog needs properties.client.region")
		}
	case "sql":
		c.known(key, own, fail)
		if own["uri"] == "" {
			fail(key, "a sql catalog needs properties.uri: that of its database, such as postgresql://user:password@host/db or sqlite:////path/to/file.db")
		}
	case "registered":
		if len(c.Tables) == 0 {
			fail(key, "a registered catalog needs tables")
		}
		for name, file := range c.Tables {
			if i := strings.LastIndexByte(name, '.'); i <= 0 || i == len(name)-1 {
				fail(key+".tables."+name, "a table's name is of the form namespace.table")
			}
			absolute(key+".tables."+name, file)
		}
		for p := range own {
			fail(key+".properties", "%s: a registered catalog has no properties", p)
		}
	case "rest":
		if len(c.Tables) > 0 {
			fail(key, "tables belong to a registered catalog; this one is rest")
		}
		rest.Check(own, func(property, reason string) {
			at := key + ".properties." + property
			if _, ok := c.Properties[property]; !ok {
				at = key + ".properties"
				reason = property + " " + reason
			} else if strings.HasPrefix(reason, "is not a property") {
				reason = strings.Replace(reason, "; there are", nearest(property, rest.Properties())+"; there are", 1)
			}
			fail(at, "%s", reason)
		})
	default:
		fail(key+".type", "%q is not known; there are glue, hadoop, registered, rest and sql", c.Type)
	}
}

// known refuses properties that the catalog does not read: a misspelt one would leave a default in force.
func (c Catalog) known(key string, own map[string]string, fail func(key, format string, args ...any)) {
	names := catalogProperties(c.Type)
	for _, p := range slices.Sorted(maps.Keys(own)) {
		if !slices.Contains(names, p) {
			slices.Sort(names)
			fail(key+".properties", "%s is not a property of a %s catalog%s; there are %s", p, c.Type, nearest(p, names), strings.Join(names, ", "))
		}
	}
	if len(c.Tables) > 0 {
		fail(key, "tables belong to a registered catalog; this one is %s", c.Type)
	}
}

// nearest names the property that was probably meant, if one is near.
func nearest(name string, names []string) string {
	best, bestDistance := "", 1+min(3, len(name)/2)
	for _, n := range names {
		if d := distance(name, n); d < bestDistance {
			best, bestDistance = n, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// CatalogNames lists the catalogs in order.
func (c *Config) CatalogNames() []string {
	names := make([]string, 0, len(c.Catalogs))
	for n := range c.Catalogs {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// MachineMemory is the memory that percentages of limits.memory speak of: the cgroup's limit, or the machine's.
func MachineMemory() int64 {
	total := int64(4 << 30)
	if raw, err := os.ReadFile("/proc/meminfo"); err == nil {
		for _, line := range strings.Split(string(raw), "\n") {
			if f := strings.Fields(line); len(f) >= 2 && f[0] == "MemTotal:" {
				if kib, err := strconv.ParseInt(f[1], 10, 64); err == nil {
					total = kib << 10
				}
			}
		}
	}
	for _, p := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if raw, err := os.ReadFile(p); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64); err == nil && n > 0 && n < total {
				total = n
			}
		}
	}
	return total
}

// QueryWorkers resolves limits.workers.
func (c *Config) QueryWorkers() int {
	if c.Limits.Workers > 0 {
		return c.Limits.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// check refuses limits that could not be enforced.
func (l Limits) check(fail func(key, format string, args ...any)) {
	for _, n := range []struct {
		key   string
		value int
	}{
		{"concurrency.queries", l.Concurrency.Queries}, {"concurrency.queue", l.Concurrency.Queue}, {"concurrency.lookups", l.Concurrency.Lookups},
		{"principal.queries", l.Principal.Queries}, {"principal.queue", l.Principal.Queue}, {"connections.max", l.Connections.Max}, {"query.rows", l.Query.Rows},
	} {
		if n.value < 0 {
			fail("limits."+n.key, "%d is below 0", n.value)
		}
	}
	for _, a := range []struct {
		key   string
		value Amount
	}{{"query.result", l.Query.Result}, {"query.scan", l.Query.Scan}} {
		if a.value.Percent > 0 {
			fail("limits."+a.key, "%s is a share; give a size, such as 10GiB", a.value)
		}
	}
}
