package query_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const everyType = `SELECT CAST(NULL AS integer) a, 1.50 b, X'00ff' c, DATE '2020-01-02' d, TIMESTAMP '2020-01-01 00:00:00.5' e,
 ARRAY[1,NULL] f, CAST(ROW(1,'x"<') AS ROW(p integer, q varchar)) g, MAP(ARRAY['a','b'],ARRAY[2.50,NULL]) h, '日本<' || chr(9) i, true j,
 TIMESTAMP '2020-01-01 00:00:00 UTC' k, TIME '01:02:03' l, DOUBLE '1e300' m, -infinity() n, nan() o, DOUBLE '0.1' p,
 INTERVAL '-1 02:03:04.5' DAY TO SECOND q, INTERVAL '1-2' YEAR TO MONTH r, UUID '12345678-1234-1234-1234-123456789abc' s,
 ARRAY[DATE '2020-01-01'] t, ARRAY[X'00ff'] u, ARRAY[nan()] v, 12345678901234567890.12 w, REAL '0.1' x`

func TestEveryTypeIsWritten(t *testing.T) {
	out, err := run("--format", "json", everyType)
	require.NoError(t, err)
	require.Equal(t, `{"a":null,"b":"1.50","c":"00ff","d":"2020-01-02","e":"2020-01-01T00:00:00.5",`+
		`"f":[1,null],"g":{"p":1,"q":"x\"<"},"h":{"a":"2.50","b":null},"i":"日本<\t","j":true,`+
		`"k":"2020-01-01T00:00:00Z","l":"01:02:03","m":1e+300,"n":"-Infinity","o":"NaN","p":0.1,`+
		`"q":"-1 02:03:04.500","r":"1-2","s":"12345678-1234-1234-1234-123456789abc",`+
		`"t":["2020-01-01"],"u":["00ff"],"v":["NaN"],"w":"12345678901234567890.12","x":0.1}`+"\n", out)
	out, err = run("--format", "csv", everyType)
	require.NoError(t, err)
	_, row, _ := strings.Cut(out, "\n")
	require.Equal(t, `,1.50,00ff,2020-01-02,2020-01-01 00:00:00.5,`+
		`"[1,null]","{""p"":1,""q"":""x\""<""}","{""a"":""2.50"",""b"":null}",日本<`+"\t"+`,true,`+
		`2020-01-01 00:00:00 UTC,01:02:03,1e+300,-Infinity,NaN,0.1,`+
		`-1 02:03:04.500,1-2,12345678-1234-1234-1234-123456789abc,`+
		`"[""2020-01-01""]","[""00ff""]","[""NaN""]",12345678901234567890.12,0.1`+"\n", row)
}

// TestJSONStandsAsItIs: in a form that is JSON, variants and values of type json are values and not text.
func TestJSONStandsAsItIs(t *testing.T) {
	const sql = `SELECT CAST('x' AS variant) v, ARRAY[CAST(1.50 AS variant), NULL] w, MAP(ARRAY['k'], ARRAY[JSON '[1, {"a": 2}]']) j, '{"a"' t, ROW(parse_json('null')) n`
	out, err := run("--format", "json", sql)
	require.NoError(t, err)
	require.Equal(t, `{"v":"x","w":[1.50,null],"j":{"k":[1,{"a":2}]},"t":"{\"a\"","n":{"field0":null}}`+"\n", out)
	arrow, err := run("--format", "json", "SET SESSION variants = 'arrow'; "+sql)
	require.NoError(t, err)
	require.Equal(t, `{"result":"variants arrow"}`+"\n"+out, arrow)
}

// TestErrorInTheMiddle: what came before an error stays, what follows does not run.
func TestErrorInTheMiddle(t *testing.T) {
	out, err := run("--format", "csv", "SELECT 1 AS a; SELECT nope; SELECT 3 AS c")
	require.ErrorContains(t, err, "COLUMN_NOT_FOUND")
	require.Equal(t, "a\n1\n", out)
}
