package sql

import "strings"

// reserved words cannot name anything without quotes. The list is Trino's, so that a statement that runs there runs here.
const reserved = `ALTER AND AS BETWEEN BY CASE CAST CONSTRAINT CREATE CROSS CUBE CURRENT_CATALOG CURRENT_DATE CURRENT_PATH
CURRENT_ROLE CURRENT_SCHEMA CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER DEALLOCATE DELETE DESCRIBE DISTINCT DROP ELSE END
ESCAPE EXCEPT EXISTS EXTRACT FALSE FOR FROM FULL GROUP GROUPING HAVING IN INNER INSERT INTERSECT INTO IS JOIN LEFT
LIKE LISTAGG LOCALTIME LOCALTIMESTAMP NATURAL NORMALIZE NOT NULL ON OR ORDER OUTER RECURSIVE RIGHT ROLLUP SELECT
TABLE THEN TRIM TRUE UESCAPE UNION UNNEST USING VALUES WHEN WHERE WITH`

// notAlias words end a table or select item: they are names elsewhere, but not an alias without AS.
const notAlias = `LIMIT OFFSET FETCH WINDOW QUALIFY TABLESAMPLE LATERAL MINUS ANTI SEMI ILIKE`

// other words mean something in some place and are plain names everywhere else.
const other = `ALL ANALYZE ANY ARRAY ASC AT BERNOULLI BIGINT BOTH BRANCH CATALOG CATALOGS COLUMNS CURRENT DATE DAY DECIMAL
DESC DOUBLE EMPTY ERROR EXCLUDE EXPLAIN FILTER FIRST FOLLOWING FORMAT FUNCTIONS GROUPS HOUR IF IGNORE INTERVAL LAST LEADING MAP
MERGE MINUTE MONTH NEXT NFC NFD NFKC NFKD NO NULLS OF ONLY ORDINALITY OTHERS OVER OVERFLOW PARTITION POSITION PRECEDING PRECISION RANGE
REPLACE RESET RESPECT RETURNING ROW ROWS SCHEMA SCHEMAS DATABASES SECOND SESSION SET SETS SHOW SNAPSHOT SOME STRUCT SUBSTRING SYSTEM
SYSTEM_TIME SYSTEM_VERSION TABLES TAG TEXT TIES TIME TIMESTAMP TO TRAILING TRY_CAST TYPE UNBOUNDED UNKNOWN UPDATE USE
VARYING VERBOSE VERSION VIEW VIEWS WITHIN WITHOUT YEAR ZONE TRUNCATE GRANT REVOKE CALL COMMENT RENAME COMMIT ROLLBACK START BEGIN REFRESH
COPY EXECUTE PREPARE ANALYSE OPTIMIZE VACUUM LOAD DENY DUMP ATTACH DETACH INSTALL PRAGMA DAYS MONTHS YEARS HOURS MINUTES SECONDS WEEK
WEEKS QUARTER MILLISECOND MILLISECONDS MICROSECOND MICROSECONDS`

const (
	classOther = iota
	classNotAlias
	classReserved
)

type word struct {
	name  string
	class uint8
}

var keywords = func() map[string]word {
	m := map[string]word{}
	for class, list := range []string{classOther: other, classNotAlias: notAlias, classReserved: reserved} {
		for _, w := range strings.Fields(list) {
			m[w] = word{w, uint8(class)}
		}
	}
	return m
}()

const maxKeyword = 20

// keyword gives the upper-case keyword that s spells, or "".
func keyword(s string) string {
	if len(s) > maxKeyword {
		return ""
	}
	var buf [maxKeyword]byte
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		buf[i] = c
	}
	return keywords[string(buf[:len(s)])].name
}

// isReserved reports whether an unquoted word cannot be a name.
func isReserved(kw string) bool { return kw != "" && keywords[kw].class == classReserved }

// Nearest gives the candidate that is closest to s in spelling, ignoring case, or "" when none is close enough to be what
// was meant.
func Nearest(s string, candidates []string) string {
	best, bestCost := "", len(s)/3+1
	ls := strings.ToLower(s)
	for _, c := range candidates {
		if n := editDistance(ls, strings.ToLower(c), bestCost); n < bestCost || n == bestCost && best == "" && n < len(s) && n <= max(1, len(s)/3) {
			best, bestCost = c, n
		}
	}
	return best
}

// editDistance is Levenshtein's with transpositions, cut off above limit.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit || len(a) > 128 {
		return limit + 1
	}
	var prev2 []int
	prev := make([]int, len(b)+1)
	cur := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, make([]int, len(b)+1)
	}
	return prev[len(b)]
}
