package server

import (
	"context"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql/schema_ref"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	arrowmem "github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skua-db/skua/expr"
)

// sqlInfo gives the answer to every code of the protocol. The Go type chooses the branch of the answer's union, which
// drivers cast to without asking: string, bool, int64, int32 (a bit mask or ordinal), []string, map[int32][]int32.
func sqlInfo(version string) map[uint32]any {
	functions := functionsByFamily()
	info := map[pb.SqlInfo]any{
		pb.SqlInfo_FLIGHT_SQL_SERVER_NAME:                                        "Skua",
		pb.SqlInfo_FLIGHT_SQL_SERVER_VERSION:                                     version,
		pb.SqlInfo_FLIGHT_SQL_SERVER_ARROW_VERSION:                               arrow.PkgVersion,
		pb.SqlInfo_FLIGHT_SQL_SERVER_READ_ONLY:                                   true,
		pb.SqlInfo_FLIGHT_SQL_SERVER_SQL:                                         true,
		pb.SqlInfo_FLIGHT_SQL_SERVER_SUBSTRAIT:                                   false,
		pb.SqlInfo_FLIGHT_SQL_SERVER_SUBSTRAIT_MIN_VERSION:                       "",
		pb.SqlInfo_FLIGHT_SQL_SERVER_SUBSTRAIT_MAX_VERSION:                       "",
		pb.SqlInfo_FLIGHT_SQL_SERVER_TRANSACTION:                                 int32(pb.SqlSupportedTransaction_SQL_SUPPORTED_TRANSACTION_NONE),
		pb.SqlInfo_FLIGHT_SQL_SERVER_CANCEL:                                      true,
		pb.SqlInfo_FLIGHT_SQL_SERVER_BULK_INGESTION:                              false,
		pb.SqlInfo_FLIGHT_SQL_SERVER_INGEST_TRANSACTIONS_SUPPORTED:               false,
		pb.SqlInfo_FLIGHT_SQL_SERVER_STATEMENT_TIMEOUT:                           int32(0),
		pb.SqlInfo_FLIGHT_SQL_SERVER_TRANSACTION_TIMEOUT:                         int32(0),
		pb.SqlInfo_SQL_DDL_CATALOG:                                               false,
		pb.SqlInfo_SQL_DDL_SCHEMA:                                                false,
		pb.SqlInfo_SQL_DDL_TABLE:                                                 false,
		pb.SqlInfo_SQL_IDENTIFIER_CASE:                                           int32(pb.SqlSupportedCaseSensitivity_SQL_CASE_SENSITIVITY_CASE_INSENSITIVE),
		pb.SqlInfo_SQL_IDENTIFIER_QUOTE_CHAR:                                     `"`,
		pb.SqlInfo_SQL_QUOTED_IDENTIFIER_CASE:                                    int32(pb.SqlSupportedCaseSensitivity_SQL_CASE_SENSITIVITY_UNKNOWN),
		pb.SqlInfo_SQL_ALL_TABLES_ARE_SELECTABLE:                                 true,
		pb.SqlInfo_SQL_NULL_ORDERING:                                             int32(pb.SqlNullOrdering_SQL_NULLS_SORTED_AT_END),
		pb.SqlInfo_SQL_KEYWORDS:                                                  keywordsBeyondSQL2003,
		pb.SqlInfo_SQL_NUMERIC_FUNCTIONS:                                         functions["math"],
		pb.SqlInfo_SQL_STRING_FUNCTIONS:                                          functions["string"],
		pb.SqlInfo_SQL_SYSTEM_FUNCTIONS:                                          functions["conditional"],
		pb.SqlInfo_SQL_DATETIME_FUNCTIONS:                                        functions["datetime"],
		pb.SqlInfo_SQL_SEARCH_STRING_ESCAPE:                                      `\`,
		pb.SqlInfo_SQL_EXTRA_NAME_CHARACTERS:                                     "",
		pb.SqlInfo_SQL_SUPPORTS_COLUMN_ALIASING:                                  true,
		pb.SqlInfo_SQL_NULL_PLUS_NULL_IS_NULL:                                    true,
		pb.SqlInfo_SQL_SUPPORTS_CONVERT:                                          map[int32][]int32{},
		pb.SqlInfo_SQL_SUPPORTS_TABLE_CORRELATION_NAMES:                          true,
		pb.SqlInfo_SQL_SUPPORTS_DIFFERENT_TABLE_CORRELATION_NAMES:                false,
		pb.SqlInfo_SQL_SUPPORTS_EXPRESSIONS_IN_ORDER_BY:                          true,
		pb.SqlInfo_SQL_SUPPORTS_ORDER_BY_UNRELATED:                               true,
		pb.SqlInfo_SQL_SUPPORTED_GROUP_BY:                                        bits(int32(pb.SqlSupportedGroupBy_SQL_GROUP_BY_UNRELATED), int32(pb.SqlSupportedGroupBy_SQL_GROUP_BY_BEYOND_SELECT)),
		pb.SqlInfo_SQL_SUPPORTS_LIKE_ESCAPE_CLAUSE:                               true,
		pb.SqlInfo_SQL_SUPPORTS_NON_NULLABLE_COLUMNS:                             true,
		pb.SqlInfo_SQL_SUPPORTED_GRAMMAR:                                         bits(int32(pb.SupportedSqlGrammar_SQL_MINIMUM_GRAMMAR), int32(pb.SupportedSqlGrammar_SQL_CORE_GRAMMAR)),
		pb.SqlInfo_SQL_ANSI92_SUPPORTED_LEVEL:                                    bits(int32(pb.SupportedAnsi92SqlGrammarLevel_ANSI92_ENTRY_SQL)),
		pb.SqlInfo_SQL_SUPPORTS_INTEGRITY_ENHANCEMENT_FACILITY:                   false,
		pb.SqlInfo_SQL_OUTER_JOINS_SUPPORT_LEVEL:                                 bits(int32(pb.SqlOuterJoinsSupportLevel_SQL_LIMITED_OUTER_JOINS), int32(pb.SqlOuterJoinsSupportLevel_SQL_FULL_OUTER_JOINS)),
		pb.SqlInfo_SQL_SCHEMA_TERM:                                               "schema",
		pb.SqlInfo_SQL_PROCEDURE_TERM:                                            "procedure",
		pb.SqlInfo_SQL_CATALOG_TERM:                                              "catalog",
		pb.SqlInfo_SQL_CATALOG_AT_START:                                          true,
		pb.SqlInfo_SQL_SCHEMAS_SUPPORTED_ACTIONS:                                 int32(0),
		pb.SqlInfo_SQL_CATALOGS_SUPPORTED_ACTIONS:                                int32(0),
		pb.SqlInfo_SQL_SUPPORTED_POSITIONED_COMMANDS:                             int32(0),
		pb.SqlInfo_SQL_SELECT_FOR_UPDATE_SUPPORTED:                               false,
		pb.SqlInfo_SQL_STORED_PROCEDURES_SUPPORTED:                               false,
		pb.SqlInfo_SQL_SUPPORTED_SUBQUERIES:                                      bits(0, 1, 2, 3), // in comparisons, EXISTS, IN, quantified
		pb.SqlInfo_SQL_CORRELATED_SUBQUERIES_SUPPORTED:                           true,
		pb.SqlInfo_SQL_SUPPORTED_UNIONS:                                          bits(int32(pb.SqlSupportedUnions_SQL_UNION), int32(pb.SqlSupportedUnions_SQL_UNION_ALL)),
		pb.SqlInfo_SQL_MAX_ROW_SIZE_INCLUDES_BLOBS:                               true,
		pb.SqlInfo_SQL_MAX_STATEMENT_LENGTH:                                      int64(1 << 20),
		pb.SqlInfo_SQL_DEFAULT_TRANSACTION_ISOLATION:                             int64(pb.SqlTransactionIsolationLevel_SQL_TRANSACTION_NONE),
		pb.SqlInfo_SQL_TRANSACTIONS_SUPPORTED:                                    false,
		pb.SqlInfo_SQL_SUPPORTED_TRANSACTIONS_ISOLATION_LEVELS:                   bits(int32(pb.SqlTransactionIsolationLevel_SQL_TRANSACTION_NONE)),
		pb.SqlInfo_SQL_DATA_DEFINITION_CAUSES_TRANSACTION_COMMIT:                 false,
		pb.SqlInfo_SQL_DATA_DEFINITIONS_IN_TRANSACTIONS_IGNORED:                  false,
		pb.SqlInfo_SQL_SUPPORTED_RESULT_SET_TYPES:                                bits(int32(pb.SqlSupportedResultSetType_SQL_RESULT_SET_TYPE_FORWARD_ONLY)),
		pb.SqlInfo_SQL_SUPPORTED_CONCURRENCIES_FOR_RESULT_SET_UNSPECIFIED:        int32(0),
		pb.SqlInfo_SQL_SUPPORTED_CONCURRENCIES_FOR_RESULT_SET_FORWARD_ONLY:       bits(int32(pb.SqlSupportedResultSetConcurrency_SQL_RESULT_SET_CONCURRENCY_READ_ONLY)),
		pb.SqlInfo_SQL_SUPPORTED_CONCURRENCIES_FOR_RESULT_SET_SCROLL_SENSITIVE:   int32(0),
		pb.SqlInfo_SQL_SUPPORTED_CONCURRENCIES_FOR_RESULT_SET_SCROLL_INSENSITIVE: int32(0),
		pb.SqlInfo_SQL_BATCH_UPDATES_SUPPORTED:                                   false,
		pb.SqlInfo_SQL_SAVEPOINTS_SUPPORTED:                                      false,
		pb.SqlInfo_SQL_NAMED_PARAMETERS_SUPPORTED:                                true,
		pb.SqlInfo_SQL_LOCATORS_UPDATE_COPY:                                      false,
		pb.SqlInfo_SQL_STORED_FUNCTIONS_USING_CALL_SYNTAX_SUPPORTED:              false,
	}
	// The remaining limits are int64 too, and zero says that there is no limit or that it is not known.
	for code := pb.SqlInfo_SQL_MAX_BINARY_LITERAL_LENGTH; code <= pb.SqlInfo_SQL_MAX_USERNAME_LENGTH; code++ {
		if _, ok := info[code]; !ok {
			info[code] = int64(0)
		}
	}
	out := make(map[uint32]any, len(info))
	for k, v := range info {
		out[uint32(k)] = v
	}
	return out
}

// notInList are codes that drivers up to version 15 do not know: an unknown code in the answer to "all" makes their first
// metadata call fail, so these are told only when asked for by number.
var notInList = map[uint32]bool{
	uint32(pb.SqlInfo_FLIGHT_SQL_SERVER_BULK_INGESTION):                true,
	uint32(pb.SqlInfo_FLIGHT_SQL_SERVER_INGEST_TRANSACTIONS_SUPPORTED): true,
}

// keywordsBeyondSQL2003 are the reserved words that are not the standard's, as JDBC asks for them.
var keywordsBeyondSQL2003 = []string{"EXCLUDE", "ILIKE", "LIMIT", "OFFSET", "QUALIFY", "REPLACE", "SHOW", "TRY_CAST", "USE"}

func bits(values ...int32) int32 {
	var m int32
	for _, v := range values {
		m |= 1 << v
	}
	return m
}

// jdbcFamilies are the functions that JDBC's escape syntax knows, by its families; what the registry has of them is told.
var jdbcFamilies = map[string][]string{
	"math": {"abs", "acos", "asin", "atan", "atan2", "ceiling", "cos", "cot", "degrees", "exp", "floor", "ln", "log", "log10", "mod",
		"pi", "power", "radians", "rand", "round", "sign", "sin", "sqrt", "tan", "truncate"},
	"string": {"chr", "concat", "length", "lower", "lpad", "ltrim", "position", "regexp_like", "regexp_replace", "replace", "reverse",
		"rpad", "rtrim", "soundex", "split", "starts_with", "strpos", "substring", "translate", "trim", "upper"},
	"datetime": {"current_date", "current_time", "current_timestamp", "date_add", "date_diff", "date_format", "date_trunc", "day",
		"extract", "hour", "minute", "month", "now", "quarter", "second", "week", "year"},
	"conditional": {"coalesce", "current_catalog", "current_schema", "current_user", "if", "nullif"},
}

func functionsByFamily() map[string][]string {
	known := map[string]bool{}
	for _, f := range expr.Functions() {
		known[f.Name] = true
	}
	out := map[string][]string{}
	for family, names := range jdbcFamilies {
		out[family] = []string{}
		for _, n := range names {
			if known[n] {
				out[family] = append(out[family], n)
			}
		}
	}
	return out
}

// sqlInfoCommand is CommandGetSqlInfo. Codes that are not known are left out of the answer.
type sqlInfoCommand struct {
	info map[uint32]any
	ask  []uint32
	raw  []byte
}

func (c *sqlInfoCommand) schema(context.Context) (*arrow.Schema, error) {
	return schema_ref.SqlInfo, nil
}
func (c *sqlInfoCommand) ticket(context.Context) ([]byte, error) { return c.raw, nil }

func (c *sqlInfoCommand) rows(_ context.Context, out *rowWriter) error {
	ask := c.ask
	if len(ask) == 0 {
		for code := range c.info {
			if !notInList[code] {
				ask = append(ask, code)
			}
		}
		sort.Slice(ask, func(i, j int) bool { return ask[i] < ask[j] })
	}
	b := array.NewRecordBuilder(arrowmem.DefaultAllocator, schema_ref.SqlInfo)
	defer b.Release()
	for _, code := range ask {
		if v, ok := c.info[code]; ok {
			b.Field(0).(*array.Uint32Builder).Append(code)
			appendInfo(b.Field(1).(*array.DenseUnionBuilder), v)
		}
	}
	return out.batch(b.NewRecordBatch())
}

// The branches of the answer's union, in the order of schema_ref.SqlInfo.
const (
	infoString arrow.UnionTypeCode = iota
	infoBool
	infoInt64
	infoInt32
	infoStrings
	infoMap
)

func appendInfo(u *array.DenseUnionBuilder, v any) {
	switch v := v.(type) {
	case string:
		u.Append(infoString)
		u.Child(int(infoString)).(*array.StringBuilder).Append(v)
	case bool:
		u.Append(infoBool)
		u.Child(int(infoBool)).(*array.BooleanBuilder).Append(v)
	case int64:
		u.Append(infoInt64)
		u.Child(int(infoInt64)).(*array.Int64Builder).Append(v)
	case int32:
		u.Append(infoInt32)
		u.Child(int(infoInt32)).(*array.Int32Builder).Append(v)
	case []string:
		u.Append(infoStrings)
		l := u.Child(int(infoStrings)).(*array.ListBuilder)
		l.Append(true)
		l.ValueBuilder().(*array.StringBuilder).AppendValues(v, nil)
	case map[int32][]int32:
		u.Append(infoMap)
		m := u.Child(int(infoMap)).(*array.MapBuilder)
		m.Append(true)
		for k, xs := range v {
			m.KeyBuilder().(*array.Int32Builder).Append(k)
			l := m.ItemBuilder().(*array.ListBuilder)
			l.Append(true)
			l.ValueBuilder().(*array.Int32Builder).AppendValues(xs, nil)
		}
	}
}
