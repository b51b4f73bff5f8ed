package functions

// missing are the functions of Trino that Skua does not have, with the reason.
var missing = map[string]string{
	"approx_set":               noSketches,
	"empty_approx_set":         noSketches,
	"merge":                    "It joins sketches, and there are no types of them.",
	"tdigest_agg":              noDigests,
	"qdigest_agg":              noDigests,
	"quantile_at_value":        noDigests,
	"value_at_quantile":        noDigests,
	"values_at_quantiles":      noDigests,
	"make_set_digest":          noSets,
	"merge_set_digest":         noSets,
	"hash_counts":              noSets,
	"intersection_cardinality": noSets,
	"jaccard_index":            noSets,
	"bar":                      noColors,
	"color":                    noColors,
	"render":                   noColors,
	"rgb":                      noColors,
	"current_groups":           "Users belong to no groups that a query could see.",
	"exclude_columns":          "It is a table function; `SELECT * EXCLUDE (...)` does the same.",
	"spooky_hash_v2_32":        "Nothing else that Skua reads or writes uses SpookyHash; xxhash64 and murmur3 are there.",
	"spooky_hash_v2_64":        "Nothing else that Skua reads or writes uses SpookyHash; xxhash64 and murmur3 are there.",
	"word_stem":                "Stemming needs the rules of each language, which Skua does not carry.",
}

const (
	noSketches = "There is no hyperloglog type; approx_distinct counts without one."
	noDigests  = "There are no tdigest and qdigest types; approx_percentile ranks without them."
	noSets     = "There is no setdigest type."
	noColors   = "There is no color type, and results are not written for a terminal."
)

// differences are overloads that Skua answers in another way, or lacks.
var differences = []struct{ functions, what string }{
	{"approx_percentile", "ranks all values exactly: the value at rank floor(share * count), as Trino where its digest still holds every value; an accuracy is checked and otherwise not used."},
	{"approx_distinct", "takes a standard error and does not use it: its own is 2.3 %, and up to 256 values are counted exactly."},
	{"checksum", "refuses types whose values are not 64 bits or bytes: nested types, uuid, wide decimals, timestamps of nanoseconds."},
	{"contains", "with two texts looks for a part of the first; there is no ipaddress type."},
	{"reduce_agg", "takes states of any type; its lambdas see no columns."},
	{"regexp_*", "take RE2 patterns; look-around and back-references are refused by name."},
	{"all functions of text", "take char as varchar without the blanks at its end, but for length, upper, lower, reverse, substr, lpad, rpad, to_utf8 and format, which see them."},
	{"all functions of times", "have no overload for time with time zone, which no Iceberg column has."},
	{"all functions of numbers", "have no overload for Trino's number type."},
}
