// Package config is the server's configuration: every setting is a field of one struct, whose tags hold its name, its
// documentation, its default and whether it is a secret.
//
// It opens no ports and reads no tables; Check proves what can be proved without doing so. A Config is read-only once
// loaded.
package config

import (
	"time"
)

// Config is the whole configuration. Tags: yaml is the key, doc the sentence that `skua config docs` prints, default the
// text of the default value, secret that the value is never shown.
type Config struct {
	Listen        Listen             `yaml:"listen" doc:"Addresses to listen on."`
	TLS           TLS                `yaml:"tls" doc:"Transport security of the Flight port."`
	Auth          Auth               `yaml:"auth" doc:"Who may connect."`
	Catalogs      map[string]Catalog `yaml:"catalogs" doc:"The catalogs, by the name that SQL knows them by."`
	Encryption    Encryption         `yaml:"encryption" doc:"Keys of encrypted tables."`
	Default       Default            `yaml:"default" doc:"Where a session begins."`
	Limits        Limits             `yaml:"limits" doc:"Limits; each one is enforced or the server does not start."`
	Caches        Caches             `yaml:"caches" doc:"Caches of metadata, footers, deletes and pages."`
	Observability Observability      `yaml:"observability" doc:"Logs."`
	Drain         Drain              `yaml:"drain" doc:"How the server stops at SIGTERM."`
}

// Drain is how the server stops.
type Drain struct {
	Notice time.Duration `yaml:"notice" default:"0s" doc:"How long health checks say NOT_SERVING before anything is refused; the time a balancer needs to see it."`
	Time   time.Duration `yaml:"time" default:"30s" doc:"How long running statements may go on; those left are cancelled and told to try another server."`
}

// Listen holds addresses.
type Listen struct {
	Flight string `yaml:"flight" default:"127.0.0.1:7470" doc:"host:port of Flight SQL."`
}

// TLS holds the server's certificate.
type TLS struct {
	CertFile   string `yaml:"cert_file" doc:"PEM certificate chain; without it the port is plaintext, which is allowed on loopback only unless insecure is set."`
	KeyFile    string `yaml:"key_file" doc:"PEM private key of cert_file."`
	MinVersion string `yaml:"min_version" default:"1.2" doc:"Lowest TLS version: 1.2 or 1.3."`
	SelfSigned bool   `yaml:"self_signed" default:"false" doc:"Makes a certificate of its own at each start, which clients can only take unseen; for trying things out."`
	ClientCAs  string `yaml:"client_ca_file" doc:"PEM certificates of the authorities whose client certificates are taken (mTLS); auth.certificates says who shows which."`
	ClientAuth string `yaml:"client_auth" default:"optional" doc:"optional, or required: whoever shows no certificate gets no connection. With client_ca_file."`
	Insecure   bool   `yaml:"insecure" default:"false" doc:"Allows plaintext on an address that others can reach, for a port behind a proxy that ends TLS."`
}

// Auth says who may connect.
type Auth struct {
	Anonymous  bool        `yaml:"anonymous" default:"false" doc:"Lets everybody in without credentials; allowed on loopback only."`
	UsersFile  string      `yaml:"users_file" doc:"File of lines name:hash, the hash by bcrypt or argon2id."`
	Tokens     []Token     `yaml:"tokens" doc:"Static bearer tokens."`
	OIDC       []OIDC      `yaml:"oidc" doc:"Identity providers whose JSON Web Tokens are taken as bearer tokens."`
	Subjects   []Subject   `yaml:"certificates" doc:"Who shows which client certificate; the first that fits counts."`
	PolicyFile string      `yaml:"policy_file" doc:"File of rules that say what each principal may see (docs/access.md); without one everybody who may connect sees everything."`
	TicketKeys []TicketKey `yaml:"ticket_keys" doc:"Keys that seal handles and tickets; the first seals, all open. Without one a random key is made at each start, so handles end with the process."`
}

// Token is a static bearer token.
type Token struct {
	Name   string `yaml:"name" doc:"Principal of who presents the token."`
	Secret string `yaml:"secret" secret:"true" doc:"The token, best as ${file:...} or ${env:...}."`
}

// OIDC is an identity provider (OpenID Connect).
type OIDC struct {
	Issuer         string        `yaml:"issuer" doc:"URL of the provider, as its tokens name it; its keys are found through /.well-known/openid-configuration."`
	Audience       []string      `yaml:"audience" doc:"A token must be meant for one of these."`
	Algorithms     []string      `yaml:"algorithms" doc:"Algorithms that may sign; RS256 and ES256 when there are none here."`
	PrincipalClaim string        `yaml:"principal_claim" default:"sub" doc:"Claim that names the principal."`
	RolesClaim     string        `yaml:"roles_claim" doc:"Claim that lists roles for the access policy, such as groups or realm_access.roles."`
	ClockSkew      time.Duration `yaml:"clock_skew" default:"30s" doc:"By how much clocks may differ."`
	CAFile         string        `yaml:"ca_file" doc:"PEM certificates of authorities to trust for the provider beside the system's."`
}

// Subject names the principal of a client certificate.
type Subject struct {
	Subject   string `yaml:"subject" doc:"Subject (CN=etl,O=Example) or alternative name of the certificate; * stands for anything."`
	Principal string `yaml:"principal" default:"$CN" doc:"Principal of who shows it; $CN stands for the common name."`
}

// TicketKey is a key that seals tickets.
type TicketKey struct {
	ID     string `yaml:"id" doc:"Name of the key; it stands in tickets."`
	Secret string `yaml:"secret" secret:"true" doc:"At least 16 bytes, best as ${file:...} or ${env:...}."`
}

// Catalog describes one catalog.
type Catalog struct {
	Type            string            `yaml:"type" default:"hadoop" doc:"hadoop (a warehouse folder), registered (single metadata files), rest (an Iceberg REST catalog), glue (AWS Glue) or sql (the database of a JDBC catalog)."`
	Properties      map[string]string `yaml:"properties" doc:"Iceberg's own catalog properties, which docs/catalogs.md lists by type."`
	Tables          map[string]string `yaml:"tables" doc:"Of a registered catalog: namespace.table to the path of its metadata file."`
	AllowedPrefixes []string          `yaml:"allowed_prefixes" doc:"Locations that tables may read beside the warehouse or their own folder."`
	LocationMapping map[string]string `yaml:"location_mapping" doc:"Prefixes of paths in table metadata to the prefixes to read instead; the longest match wins."`
}

// Encryption says who unwraps the keys of encrypted tables.
type Encryption struct {
	KMS    KMS      `yaml:"kms" doc:"The key management service; without one encrypted tables are refused. A catalog whose properties have encryption.kms-type has one of its own."`
	Accept []string `yaml:"accept" doc:"Risks that are taken: unauthenticated-pages (Parquet pages by AES_GCM_CTR_V1, which nobody would see altered), plain-files (files of an encrypted table that are not), plain-snapshots (snapshots of an encrypted table without a key), unauthenticated-list-length (manifest lists whose length no key vouches for, so that a cut one loses rows unseen)."`
}

// KMS is a key management service.
type KMS struct {
	Type       string                       `yaml:"type" doc:"aws, azure, gcp, vault (also OpenBao) or local (master keys in a file)."`
	KeyFile    string                       `yaml:"key_file" doc:"Of a local service: a file of lines: id, blank, key in hex; only its owner may read it."`
	Properties map[string]string            `yaml:"properties" doc:"How to reach the service: what docs/encryption.md lists."`
	Identities map[string]map[string]string `yaml:"identities" doc:"Properties that a principal has of its own, over the others: a role, a token. With any, a principal without one is refused; the name * stands for all others."`
	KeyLife    time.Duration                `yaml:"key_life" default:"15m" doc:"How long an unwrapped key is kept for the principal that unwrapped it."`
	Timeout    time.Duration                `yaml:"timeout" default:"10s" doc:"Time of one call of the service."`
	Rate       int                          `yaml:"rate" default:"100" doc:"Most calls of the service a second."`
}

// Default says where a session begins.
type Default struct {
	Catalog string `yaml:"catalog" doc:"Catalog of a new session; by default the first by name."`
	Schema  string `yaml:"schema" doc:"Schema of a new session."`
}

// Limits bounds what is used.
type Limits struct {
	Memory    Amount `yaml:"memory" default:"70%" doc:"Memory of all queries and caches: a size, or a share of what the machine or its cgroup has."`
	Workers   int    `yaml:"workers" default:"0" doc:"Threads a query may use; 0 is one a core."`
	ChunkRows int    `yaml:"chunk_rows" default:"2048" doc:"Rows that operators hand on at once, at most 2048. Fewer only make queries slower."`
	Query     Query  `yaml:"query" doc:"Limits of one query."`
	Spill     Spill  `yaml:"spill" doc:"Disk for what does not fit into memory."`

	Concurrency Concurrency `yaml:"concurrency" doc:"How many statements run side by side; others wait: whose principal runs the fewest comes first, then who came first."`
	Principal   Principal   `yaml:"principal" doc:"What one principal may have of it."`
	Connections Connections `yaml:"connections" doc:"Connections of clients."`
}

// Principal bounds what one principal has.
type Principal struct {
	Queries int `yaml:"queries" default:"0" doc:"Statements of one principal that run at once; 0 is any number."`
	Queue   int `yaml:"queue" default:"0" doc:"Statements of one principal that wait; more are refused (RESOURCE_EXHAUSTED). 0 is any number."`
}

// Connections bounds connections.
type Connections struct {
	Max  int           `yaml:"max" default:"4096" doc:"Connections at once; more are closed as they come. 0 is any number."`
	Age  time.Duration `yaml:"age" default:"0s" doc:"After how long a client is asked to make a new connection, so that balancers spread load anew; calls that run go on. 0s is never. Sessions without login token or cookie end with their connection."`
	Idle time.Duration `yaml:"idle" default:"0s" doc:"After how long without a call it is asked; 0s is never."`
}

// Concurrency bounds what runs at once.
type Concurrency struct {
	Queries int           `yaml:"queries" default:"0" doc:"Statements that run at once; 0 is any number, as long as the running ones leave some of limits.memory free."`
	Wait    time.Duration `yaml:"wait" default:"60s" doc:"How long a statement waits for its turn before it fails; 0s is for ever."`
	Queue   int           `yaml:"queue" default:"1000" doc:"Statements that wait; more are refused at once (UNAVAILABLE). 0 is any number."`
	Lookups int           `yaml:"lookups" default:"1000" doc:"Lookups at once: statements on small tables, of the first rows, or that search a table for a few values. They never wait, and pass for statements again once they read more than 32 MiB. 0 is any number."`
}

// Query bounds one query.
type Query struct {
	Memory Amount        `yaml:"memory" default:"80%" doc:"Memory of one query: a size, or a share of limits.memory."`
	Time   time.Duration `yaml:"time" default:"0s" doc:"Time of one statement; 0s is no limit."`
	Rows   int           `yaml:"rows" default:"0" doc:"Rows of one result; a statement that has more fails. 0 is no limit."`
	Result Amount        `yaml:"result" default:"0B" doc:"Bytes of one result on the wire; 0B is no limit."`
	Scan   Amount        `yaml:"scan" default:"0B" doc:"Bytes that one statement reads from data files in Parquet or ORC, unpacked, or takes from caches; 0B is no limit."`
}

// Spill is where operators may write.
type Spill struct {
	Dir string `yaml:"dir" doc:"Folder for temporary files; empty is the system's. What a process that died left there is removed at the next start."`
	Max Amount `yaml:"max" default:"64GiB" doc:"Size of all temporary files at once, such as 64GiB; a query that would need more fails. 0B is no limit."`
}

// Caches bounds the caches.
type Caches struct {
	Memory Amount `yaml:"memory" default:"40%" doc:"Memory of the caches: a size, or a share of limits.memory. Caches shrink before a query is refused."`
}

// Observability configures logs.
type Observability struct {
	Log        Log        `yaml:"log" doc:"The server's log on standard error."`
	Statements Statements `yaml:"statements" doc:"Lines about statements in the log, each with call id, principal, time, waiting, rows, bytes and how it ended."`
	Audit      Audit      `yaml:"audit" doc:"A file of who asked for what."`
}

// Statements says which statements are logged.
type Statements struct {
	Log  string        `yaml:"log" default:"slow" doc:"slow, all or none."`
	Slow time.Duration `yaml:"slow" default:"30s" doc:"From which time on a statement is slow."`
	Text bool          `yaml:"text" default:"true" doc:"Puts the text of the statement into the line; it may hold values that are nobody's business."`
}

// Audit is the audit log.
type Audit struct {
	File string `yaml:"file" doc:"File that gets a line of JSON about each statement, each request for metadata and each caller who is not let in; it is only appended to. Empty is none."`
}

// Log configures the log.
type Log struct {
	Level  string `yaml:"level" default:"info" doc:"debug, info, warn or error."`
	Format string `yaml:"format" default:"auto" doc:"json, text, or auto: text on a terminal."`
}
