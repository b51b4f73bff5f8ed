"""Makes random queries in the SQL that Skua and DuckDB share.

Where the two spell or answer a thing differently on purpose, the generator takes the common ground, or Query.duck holds DuckDB's
spelling. The differences, all of them Skua's decisions after Trino:

  integer division      Skua truncates, DuckDB's / is a double's: // there
  division by zero      an error, in DuckDB NULL: divisors go through nullif
  avg of decimals       a decimal, in DuckDB a double: averages are of doubles
  text of a double      1.5E0, in DuckDB 1.5: doubles are not made text
  string length         in characters both, substr beyond the end '' both; negative starts are left out
  greatest and least    NULL when any argument is, in DuckDB when all are: arguments are coalesced
  the sum of integers   a bigint, in DuckDB a hugeint: values are compared, types are not
"""
import random
from tables import SCHEMAS


class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.names = 0

    def pick(self, *xs):
        return self.r.choice(xs)

    def chance(self, p):
        return self.r.random() < p

    # ---- expressions; cols is [(reference, kind)]
    def column(self, cols, kind):
        fit = [n for n, k in cols if k == kind]
        return self.r.choice(fit) if fit else None

    def literal(self, kind):
        if self.chance(0.08):
            return "CAST(NULL AS %s)" % {"int": "integer", "long": "bigint", "dec": "decimal(9,2)", "str": "varchar", "date": "date", "bool": "boolean",
                                         "double": "double", "ts": "timestamp"}[kind]
        return {
            "int": lambda: str(self.r.randint(-3, 12)),
            "long": lambda: "CAST(%d AS bigint)" % self.pick(0, 1, -7, 10**10),
            "dec": lambda: "CAST('%.2f' AS decimal(9,2))" % (self.r.randint(-2000, 2000) / 100),
            "str": lambda: "'%s'" % self.pick("", "a", "ab", "B", "é", "zz", "x_y"),
            "date": lambda: "DATE '2024-%02d-%02d'" % (self.r.randint(1, 12), self.r.randint(1, 28)),
            "bool": lambda: self.pick("true", "false"),
            "double": lambda: "CAST(%s AS double)" % self.pick("0.5", "-2.25", "3"),
            "ts": lambda: "TIMESTAMP '2024-02-%02d 12:00:00'" % self.r.randint(1, 28),
        }[kind]()

    def expr(self, cols, kind, depth=2):
        leaf = self.column(cols, kind)
        if depth <= 0 or self.chance(0.35):
            return leaf if leaf and self.chance(0.8) else self.literal(kind)
        e = lambda k: self.expr(cols, k, depth - 1)  # noqa: E731
        general = [
            lambda: "CASE WHEN %s THEN %s ELSE %s END" % (self.predicate(cols, depth - 1), e(kind), e(kind)),
            lambda: "CASE WHEN %s THEN %s END" % (self.predicate(cols, depth - 1), e(kind)),
            lambda: "coalesce(%s, %s)" % (e(kind), e(kind)),
            lambda: "nullif(%s, %s)" % (e(kind), e(kind)),
        ]
        special = {
            "int": [lambda: "(%s %s %s)" % (e("int"), self.pick("+", "-"), self.r.randint(0, 9)), lambda: "(%s %% nullif(%s, 0))" % (e("int"), self.r.randint(-3, 4)),
                    lambda: "CAST(length(%s) AS integer)" % e("str"), lambda: "CAST(extract(%s FROM %s) AS integer)" % (self.pick("YEAR", "MONTH", "DAY"), e("date")), lambda: "abs(%s)" % e("int"),
                    lambda: "(%s * %d)" % (e("int"), self.r.randint(-3, 3)), lambda: "CAST(%s AS integer)" % e("bool")],
            "long": [lambda: "(%s %s %s)" % (e("long"), self.pick("+", "-"), e("int")), lambda: "CAST(%s AS bigint)" % e("int"), lambda: "abs(%s)" % e("long")],
            "dec": [lambda: "CAST(%s %s %s AS decimal(9,2))" % (e("dec"), self.pick("+", "-"), self.literal("dec")), lambda: "CAST(%s AS decimal(9,2))" % self.column_or(cols, "int"),
                    lambda: "(-%s)" % e("dec"), lambda: "abs(%s)" % e("dec")],
            "str": [lambda: "upper(%s)" % e("str"), lambda: "lower(%s)" % e("str"), lambda: "(%s || %s)" % (e("str"), e("str")), lambda: "substr(%s, %d, %d)" % (e("str"), self.r.randint(1, 3), self.r.randint(0, 3)),
                    lambda: "trim(%s)" % e("str"), lambda: "replace(%s, 'a', 'q')" % e("str"), lambda: "CAST(%s AS varchar)" % e(self.pick("int", "date", "dec", "long")), lambda: "reverse(%s)" % e("str")],
            "date": [lambda: "CAST(date_trunc('%s', %s) AS date)" % (self.pick("month", "year", "week"), e("date"))],
            "bool": [lambda: "(%s)" % self.predicate(cols, depth - 1)],
            "double": [lambda: "(%s %s %s)" % (e("double"), self.pick("+", "-", "*"), self.literal("double")), lambda: "(%s / nullif(%s, CAST(0 AS double)))" % (e("double"), self.literal("double")),
                       lambda: "CAST(%s AS double)" % e(self.pick("int", "dec")), lambda: "abs(%s)" % e("double"), lambda: "floor(%s)" % e("double")],
            "ts": [lambda: "date_trunc('%s', %s)" % (self.pick("hour", "day", "month"), e("ts"))],
        }[kind]
        return self.r.choice(general + special * 2)()

    def column_or(self, cols, kind):
        return self.column(cols, kind) or self.literal(kind)

    def predicate(self, cols, depth=2):
        kind = self.pick("int", "int", "long", "dec", "str", "date", "bool", "double", "ts")
        e = lambda k, d=1: self.expr(cols, k, min(depth, d))  # noqa: E731
        p = lambda: self.predicate(cols, depth - 1)  # noqa: E731
        forms = [
            lambda: "%s %s %s" % (e(kind), self.pick("=", "<>", "<", "<=", ">", ">="), e(kind)),
            lambda: "%s IS %sNULL" % (e(kind), self.pick("", "NOT ")),
            lambda: "%s %sIN (%s, %s, %s)" % (e(kind), self.pick("", "NOT "), self.literal(kind), self.literal(kind), self.literal(kind)),
            lambda: "%s %sBETWEEN %s AND %s" % (e(kind), self.pick("", "NOT "), self.literal(kind), self.literal(kind)),
            lambda: "%s %sLIKE '%s'" % (e("str"), self.pick("", "NOT "), self.pick("a%", "%b", "_", "%", "", "a_c", "%a%")),
            lambda: "%s IS %sDISTINCT FROM %s" % (e(kind), self.pick("", "NOT "), e(kind)),
            lambda: "%s" % e("bool", 0),
        ]
        if depth > 0:
            forms += [lambda: "(%s AND %s)" % (p(), p()), lambda: "(%s OR %s)" % (p(), p()), lambda: "NOT (%s)" % p()] * 2
        return self.r.choice(forms)()

    # ---- relations
    def table(self):
        name = self.pick("t1", "t1", "t1", "t2", "t2", "t3", "t4")
        self.names += 1
        alias = "r%d" % self.names
        return "%s %s" % (name, alias), [("%s.%s" % (alias, n), k) for n, k in SCHEMAS[name]]

    def source(self, depth=2):
        """-> (FROM text, columns)"""
        if depth > 0 and self.chance(0.15):
            text, kinds = self.select(depth - 1)
            self.names += 1
            alias = "r%d" % self.names
            return "(%s) %s" % (text, alias), [("%s.o%d" % (alias, i), k) for i, k in enumerate(kinds)]
        left, cols = self.table()
        for _ in range(self.pick(0, 0, 1, 1, 2)):
            right, more = self.table()
            kind = self.pick("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN")
            if kind == "CROSS JOIN":
                left, cols = "%s CROSS JOIN %s" % (left, right), cols + more
                if len(cols) > 14:
                    break
                continue
            k = self.pick("int", "int", "str", "date", "long")
            a, b = self.column(cols, k), self.column(more, k)
            on = "%s = %s" % (a, b) if a and b else "1 = 1"
            # DuckDB takes no inequality alone in a full join.
            if self.chance(0.25):
                on += " AND " + self.predicate(more, 1)
            left, cols = "%s %s %s ON %s" % (left, kind, right, on), cols + more
        return left, cols

    def subpredicate(self, cols):
        inner, more = self.table()
        k = self.pick("int", "str")
        a, b = self.column(cols, k), self.column(more, k)
        if not a or not b:
            return self.predicate(cols, 1)
        where = " WHERE " + self.predicate(more, 1) if self.chance(0.6) else ""
        link = (" AND " if where else " WHERE ") + "%s = %s" % (a, b)
        form = self.r.randint(0, 4)
        if form == 0:
            return "%s %sIN (SELECT %s FROM %s%s)" % (a, self.pick("", "NOT "), b, inner, where)
        if form == 1:
            return "%sEXISTS (SELECT 1 FROM %s%s%s)" % (self.pick("", "NOT "), inner, where, link)
        if form == 2:
            num = self.column(more, "int")
            return "%s %s (SELECT %s(%s) FROM %s%s%s)" % (self.column(cols, "int") or "1", self.pick("<", ">=", "="), self.pick("max", "min", "count"), num, inner, where, link)
        if form == 3:
            return "(SELECT count(*) FROM %s%s%s) %s %d" % (inner, where, link, self.pick(">", "=", "<="), self.r.randint(0, 3))
        return "%s %s %s (SELECT %s FROM %s%s)" % (a, self.pick("<", ">", "=", "<>"), self.pick("ALL", "ANY"), b, inner, where)

    def aggregate(self, cols):
        k = self.pick("int", "long", "dec", "double", "str", "date", "bool")
        c = self.expr(cols, k, 1)
        filt = " FILTER (WHERE %s)" % self.predicate(cols, 1) if self.chance(0.2) else ""
        options = [("count(*)", "long"), ("count(%s)" % c, "long"), ("count(DISTINCT %s)" % c, "long"), ("min(%s)" % c, k), ("max(%s)" % c, k)]
        if k == "bool":
            options[3:] = [("bool_and(%s)" % c, k), ("bool_or(%s)" % c, k)]
        if k in ("int", "long", "dec"):
            options += [("sum(%s)" % c, "sum"), ("sum(DISTINCT %s)" % c, "sum")]
        if k in ("int", "double"):
            options += [("avg(CAST(%s AS double))" % c, "double"), ("stddev_pop(CAST(%s AS double))" % self.expr(cols, "int", 1), "approx")]
        text, kind = self.r.choice(options)
        return text + filt, kind

    def select(self, depth=2, kinds=None):
        """-> (text, kinds of the columns o0, o1, ...)"""
        src, cols = self.source(depth)
        where = ""
        if self.chance(0.6):
            where = " WHERE " + (self.subpredicate(cols) if self.chance(0.35) else self.predicate(cols))
        if kinds is None and self.chance(0.4):
            return self.grouped(src, cols, where)
        out = kinds or [self.pick("int", "long", "dec", "str", "date", "bool", "double", "ts") for _ in range(self.r.randint(1, 4))]
        items = []
        for i, k in enumerate(out):
            if kinds is None and self.chance(0.15):
                text, out[i] = self.window(cols)
            else:
                text = self.expr(cols, k)
            items.append("%s AS o%d" % (text, i))
        distinct = "DISTINCT " if self.chance(0.15) else ""
        return "SELECT %s%s FROM %s%s" % (distinct, ", ".join(items), src, where), out

    def grouped(self, src, cols, where):
        kinds, items, keys = [], [], []
        for i in range(self.r.randint(0, 2)):
            k = self.pick("int", "str", "bool", "date")
            c = self.expr(cols, k, 1) if self.chance(0.4) else self.column_or(cols, k)
            if "." not in c:
                continue
            keys.append(c)
            items.append(c)
            kinds.append(k)
        for _ in range(self.r.randint(1, 3)):
            text, k = self.aggregate(cols)
            items.append(text)
            kinds.append(k)
        group = ""
        if keys:
            group = " GROUP BY " + self.pick(", ".join(keys), ", ".join(keys), "ROLLUP(%s)" % ", ".join(keys), "CUBE(%s)" % ", ".join(keys)) if len(set(keys)) == len(keys) else " GROUP BY " + ", ".join(dict.fromkeys(keys))
        having = " HAVING count(*) %s %d" % (self.pick(">", "<"), self.r.randint(0, 4)) if self.chance(0.2) else ""
        return "SELECT %s FROM %s%s%s%s" % (", ".join("%s AS o%d" % (x, i) for i, x in enumerate(items)), src, where, group, having), kinds

    def window(self, cols):
        """Functions whose answer does not hang on the order of peers."""
        part = "PARTITION BY %s " % self.column_or(cols, self.pick("int", "str")) if self.chance(0.7) else ""
        order = "ORDER BY %s %s NULLS %s" % (self.column_or(cols, "int"), self.pick("ASC", "DESC"), self.pick("FIRST", "LAST"))
        frame = self.pick("", "", " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", " RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
                          " GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW")
        fn, kind = self.pick(("rank()", "long"), ("dense_rank()", "long"), ("count(*)", "long"), ("sum(%s)" % self.column_or(cols, "int"), "sum"), ("max(%s)" % self.column_or(cols, "str"), "str"),
                             ("min(%s)" % self.column_or(cols, "int"), "int"), ("percent_rank()", "double"), ("cume_dist()", "double"))
        if fn.split("(")[0] in ("rank", "dense_rank", "percent_rank", "cume_dist"):
            frame = ""
        return "%s OVER (%s%s%s)" % (fn, part, order, frame), kind

    def query(self):
        roll = self.r.random()
        if roll < 0.15:
            kinds = [self.pick("int", "str", "date", "long") for _ in range(self.r.randint(1, 2))]
            a, _ = self.select(1, list(kinds))
            b, _ = self.select(1, list(kinds))
            return "%s %s %s" % (a, self.pick("UNION", "UNION ALL", "INTERSECT", "EXCEPT"), b)
        if roll < 0.25:
            text, kinds = self.select()
            return "WITH w AS (%s) SELECT x.o0 AS p, count(*) AS n FROM w x GROUP BY x.o0" % text
        text, kinds = self.select()
        if roll < 0.45:
            # A total order makes the first rows certain: all columns, and equal rows are equal.
            text += " ORDER BY %s LIMIT %d" % (", ".join("o%d %s NULLS %s" % (i, self.pick("ASC", "DESC"), self.pick("FIRST", "LAST")) for i in range(len(kinds))), self.r.randint(0, 12))
            if "approx" in kinds or "double" in kinds:
                return self.query()  # rounding could turn the order of nearly equal numbers
        return text

    def partitioned(self):
        """-> (query without a predicate, [its parts by a predicate that is true, false and unknown], aggregate form or None)"""
        src, cols = self.source(0)
        p = self.predicate(cols)
        out = [self.expr(cols, self.pick("int", "str", "dec", "date")) for _ in range(2)]
        base = "SELECT %s AS o0, %s AS o1 FROM %s" % (out[0], out[1], src)
        return base, ["%s WHERE %s" % (base, w) for w in ("(%s)" % p, "NOT (%s)" % p, "(%s) IS NULL" % p)], (src, p)
