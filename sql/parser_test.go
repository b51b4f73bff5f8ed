package sql

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// strip zeroes all positions in a tree, so that trees compare by meaning.
func strip(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			strip(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			strip(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			strip(v.Index(i))
		}
	case reflect.Int32:
		if v.Type() == reflect.TypeFor[Pos]() {
			v.SetInt(0)
		}
	}
}

// roundTrip checks that the printed statement parses to the same tree.
func roundTrip(t *testing.T, text string) {
	t.Helper()
	a, err := Parse(text)
	require.NoError(t, err, text)
	out := Print(a.Statement)
	b, err := Parse(out)
	require.NoError(t, err, "printed: %s", out)
	strip(reflect.ValueOf(a.Statement))
	strip(reflect.ValueOf(b.Statement))
	require.Equal(t, a.Statement, b.Statement, "printed: %s", out)
	require.Equal(t, out, Print(b.Statement))
}

var good = strings.Split(strings.TrimSpace(`
select 1
select a.b.c, "A b", `+"`x`"+` from c.s.t as t (a, b) where a = 1 and b <> 2 or not c >= .5
from t
from t select x where y
select distinct * exclude (a, b) replace (c + 1 as c), t.* except (z) from t
select -1, - -1, +x, 1 - -1, a - (b - c), a - b - c, a || b + c * d % e, (a = b) = c, -x at time zone 'UTC'
select 1.5, 1e3, 1.5E-3, 0xff, 1_000, 'it''s', U&'\0041\+000042', X'00 ff', true, false, null
select date '2024-01-01', timestamp '2024-01-01 00:00:00', time '01:02:03', decimal '1.5', bigint '7', double precision '1', json '{}', timestamp(3) with time zone '2024-01-01 00:00:00 UTC'
select interval '1' day, interval '-1-2' year to month, interval - '3' hour, interval 3 days, interval (x + 1) month, interval '1 day'
select array[1, 2], [3], row(1, 'a'), row(1 as x, 2), (1, 2), map {'a': 1}, {'k': 1, j : 2}, map(array['a'], array[1])
select cast(a as varchar(10)), try_cast(b as decimal(10, 2)), c::int, d::timestamp(3) with time zone, e::array<int>, f::map<string,int>, g::row(a int, b varchar), h::struct<a:int, b:string>, i::int[], j::row(int, double precision), k::double array, l::interval year to month
select case a when 1 then 'x' when 2 then 'y' else 'z' end, case when a > 1 then 2 end, if(a, b), coalesce(a, b), nullif(a, b)
select a between 1 and 2, a not between symmetric1 and 2 and c, a in (1, 2), a not in (select 1), (a, b) in (select 1, 2), a like 'x%' escape '!', a not ilike b
select a is null, b is not null, c is distinct from d, e is not distinct from f, g is true, h is not false, i is unknown
select exists (select 1), a = all (select 1), b <> any (select 2), c < some (select 3), (select 1) + 2, ((select 1)), ((select 1) union (select 2))
select extract(year from x), substring(a from 2 for 3), substring(a, 2), trim(leading 'x' from y), trim(both from y), trim(y), trim('x' from y), position('a' in b), normalize(x, NFD), normalize(x)
select current_date, current_timestamp(3), localtimestamp, current_user, current_time, localtime(0), now()
select transform(a, x -> x + 1), reduce(a, 0, (s, x) -> s + x, s -> s), f(() -> 1), a[1], a[1].b, m['k'], (r).f, f(x).y[2].z
select count(*), count(distinct a), sum(a order by b desc nulls last), sum(a) filter (where b > 1), listagg(a, ',') within group (order by b), array_agg(a order by b)
select sum(a) over (partition by b, c order by d desc rows between 1 preceding and current row exclude ties), rank() over w, lag(a, 1) ignore nulls over (w rows unbounded preceding), first_value(a) respect nulls over (order by b range between interval '1' day preceding and unbounded following) from t window w as (partition by x), v as (w order by y)
select a from t qualify row_number() over (order by b) = 1
select a from t where b group by a, 1, rollup (b, c), cube (d, (e, f)), grouping sets ((a, b), a, (), rollup (c)), () having count(*) > 1 order by 1 desc nulls first, b
select a, count(*) from t group by all order by all desc
select grouping(a, b) from t group by distinct a, b
select * from a, b cross join c join d on x = y left outer join e using (k, l) natural full join f
select * from a join b join c on b.x = c.x on a.x = b.x
select * from (a join b on true) join (c cross join d) on a.x = c.x
select * from a, (b join c on true), (d, e)
select * from t for version as of 123, u for timestamp as of timestamp '2024-01-01 00:00:00 UTC' x, v for system_version as of 'tag', w for system_time as of 'now' as y
select * from t version as of 1, u timestamp as of '2024-01-01', v at (version => 3), w at snapshot '12', x at branch main1, y at tag 't' z, q at (timestamp => now())
select * from s."t$files", c.a.b.t.files, lateral (select 1) l, unnest(a, b) with ordinality as u (x, y, n), values (1, 2), (select 1) d (x)
select * from t tablesample bernoulli (10), u as x tablesample system (5.5)
select * from table(f(a => 1, 2)) t, g(1) h
values 1, 2
values (1, 'a'), (2, 'b') order by 1 limit 1
table t
table c.s.t order by 1
select json_object(key 'a' value null, 'k' : json_array(1, 2) format json absent on null), json_array(1, x null on null)
select 1 union all select 2 union select 3 intersect select 4 except all select 5 minus select 6
(select 1 limit 1) union ((select 2) intersect select 3) order by 1
select 1 union all (select 2 union select 3)
with a as (select 1), b (x, y) as (values (1, 2)) select * from a, b
with recursive t (n) as (select 1 union all select n + 1 from t where n < 5) select * from t
with a as materialized (select 1), b as not materialized (select 2) select 1
select a from t order by a offset 5 rows limit 10
select a from t limit 10 offset 5
select a from t limit all
select a from t offset 1 row fetch next row only
select a from t order by a fetch first 3 rows with ties
select a from t where b = ? and c in (?, ?) limit ?
select a from t where b = $2 and c = $1
select a from t where b = :x and c = :y and d = :x
select year, date, day, "select", first, rows, filter, version, at, format, replace from t
select date(x), year(x), left(a, 1), right(a, 1), replace(a, 'b', 'c'), format('%s', a), truncate(x), if(a, b, c), date_add('day', 1, x)
explain select 1
explain analyze verbose select 1
explain (type logical, format text) select 1
explain (format json) select 1
explain (analyze, verbose, format json) select 1
show catalogs
show schemas from c like 'a%' escape '\'
show tables in c."a.b"
show columns from t
show functions like '%x%'
show session
show create table c.s.t
describe t
desc table c.s.t
use c.s
set session dialect = 'spark'
set timezone = UTC
set time zone 'Europe/Berlin'
set x to on
reset session x
select json_value(a, 'lax $.x' returning integer null on empty default 0 on error), json_query(a, '$.x' with array wrapper), json_exists(a, '$' true on error)
select json_value(a, '$x + $.b' passing c + 1 as "x", d format json as y returning bigint) from t
select /* c */ 1 -- end
select 1;;
(((select 1)))
select ((a)), (((a + b)) * c), not (not a), (not a) = b, (a or b) and c, a or b and c, -(-a), -(1 + 2), (a || b) || c, a || (b || c)
select (a = b) is null, a = (b is null), (a in (1)) in (true), (a between b and c) between d and e, (x -> 1)
select * from (values (1), (2)) t(a) where exists (select 1 from t u where u.a = t.a)
select 'a' b`), "\n")

func TestRoundTrip(t *testing.T) {
	for _, text := range good {
		t.Run(text, func(t *testing.T) { roundTrip(t, text) })
	}
}
