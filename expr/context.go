package expr

import (
	"time"

	"github.com/skua-db/skua/vector"
)

// Context holds what an expression takes from the run rather than from its rows. It is read-only while the run lasts.
type Context struct {
	// Now is the statement's clock: current_timestamp and its kin give it for the whole run.
	Now time.Time
	// Zone is the session's time zone.
	Zone *time.Location
	// Dialect is "trino", "spark" or "duckdb".
	Dialect string
	// Params are the bound parameters, cast to their inferred types.
	Params []vector.Value
	// Subqueries are the values of uncorrelated scalar subqueries by Subquery.ID.
	Subqueries []vector.Value
	// User, Catalog and Schema answer current_user, current_catalog and current_schema.
	User, Catalog, Schema string
}
