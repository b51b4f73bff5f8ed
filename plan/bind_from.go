package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/sql"
	"github.com/skua-db/skua/vector"
)

// from binds a table reference. outer is the scope around the query; left what stands to the left, which LATERAL and UNNEST see.
func (b *binder) from(t sql.TableRef, outer, left *scope) (rel, *scope, error) {
	switch t := t.(type) {
	case *sql.TableName:
		return b.tableName(t, outer)
	case *sql.FileName:
		return b.fileName(t)
	case *sql.Derived:
		around := outer
		if t.Lateral && left != nil {
			around = left
		}
		s, err := b.query(t.Query, around)
		if err != nil {
			return nil, nil, err
		}
		if s.rel, err = b.sampleRows(s.rel, t.Sample); err != nil {
			return nil, nil, err
		}
		sc, err := b.aliased(s, t.Alias)
		return s.rel, sc, err
	case *sql.Unnest:
		return b.unnest(oneRow(), t, outer, left, false)
	case *sql.TableCall:
		return b.tableCall(t, outer)
	case *sql.Join:
		return b.join(t, outer, left)
	}
	return nil, nil, fault.New(fault.Internal, "table %T is not bound", t)
}

// aliased gives a bound query the names of its alias.
func (b *binder) aliased(s *bound, a *sql.Alias) (*scope, error) {
	sc := &scope{}
	var qual []string
	if a != nil {
		qual = []string{a.Name.Name}
		if a.Columns != nil {
			n, err := b.rename(s, a.Columns, a.Name)
			if err != nil {
				return nil, err
			}
			s = n
		}
	}
	for _, c := range s.cols {
		sc.cols = append(sc.cols, scopeCol{qual: qual, name: c.name, id: c.id})
	}
	return sc, nil
}

func joinScopes(l, r *scope, outer *scope) *scope {
	s := &scope{parent: outer}
	s.cols = append(slices.Clone(l.cols), r.cols...)
	s.scans = append(slices.Clone(l.scans), r.scans...)
	return s
}

// padded marks the columns of a scope as possibly null, because an outer join may pad them.
func padded(s *scope) *scope {
	n := *s
	n.cols = slices.Clone(s.cols)
	for i := range n.cols {
		n.cols[i].null = true
	}
	return &n
}

var joinKinds = map[string]JoinKind{"INNER": Inner, "CROSS": Inner, "LEFT": Left, "RIGHT": Right, "FULL": Full}

func (b *binder) join(j *sql.Join, outer, left *scope) (rel, *scope, error) {
	l, ls, err := b.from(j.L, outer, left)
	if err != nil {
		return nil, nil, err
	}
	kind := joinKinds[j.Kind]
	// What stands on the left is seen by LATERAL and UNNEST on the right.
	seen := joinScopes(ls, &scope{}, outer)
	if left != nil {
		seen.parent = left
	}
	if u, ok := j.R.(*sql.Unnest); ok && (kind == Inner || kind == Left) {
		if on, isBool := j.On.(*sql.Bool); j.On == nil && j.Using == nil && !j.Natural || isBool && on.Value {
			r, rs, err := b.unnest(l, u, outer, seen, kind == Left)
			if err != nil {
				return nil, nil, err
			}
			return r, joinScopes(ls, rs, outer), nil
		}
	}
	r, rs, err := b.from(j.R, outer, seen)
	if err != nil {
		return nil, nil, err
	}
	if setOf(l.out()).hasAny(free(r)) {
		return b.lateralJoin(j, kind, l, ls, r, rs, outer)
	}
	names := j.Using
	if j.Natural {
		names = nil
		for _, c := range ls.cols {
			if c.hidden {
				continue
			}
			n := sql.Ident{Pos: j.Pos, Name: c.name}
			if len(rs.lookup(nil, n)) > 0 {
				names = append(names, n)
			}
		}
	}
	switch kind {
	case Left:
		rs = padded(rs)
	case Right:
		ls = padded(ls)
	case Full:
		ls, rs = padded(ls), padded(rs)
	}
	if names != nil {
		return b.usingJoin(j, kind, names, l, ls, r, rs, outer)
	}
	sc := joinScopes(ls, rs, outer)
	out := &joinRel{kind: kind, l: l, r: r}
	if j.On == nil {
		return out, sc, nil
	}
	if kind == Inner {
		var in rel = out
		x := &exprBinder{b: b, scope: sc, rel: &in, where: "ON"}
		err := x.filter(j.On)
		return in, sc, err
	}
	x := &exprBinder{b: b, scope: sc, where: "ON"}
	for _, c := range conjuncts(j.On) {
		v, err := x.condition(c)
		if err != nil {
			return nil, nil, err
		}
		out.conds = append(out.conds, expr.Conjuncts(v)...)
	}
	return out, sc, nil
}

// lateralJoin joins l with a plan that refers to it.
func (b *binder) lateralJoin(j *sql.Join, kind JoinKind, l rel, ls *scope, r rel, rs, outer *scope) (rel, *scope, error) {
	if kind != Inner && kind != Left || j.Using != nil || j.Natural {
		return nil, nil, b.errorf(j.Pos, fault.Invalid, "INVALID_COLUMN_REFERENCE", "LATERAL goes with CROSS, INNER and LEFT JOIN with ON only")
	}
	a := &applyRel{kind: kind, l: l, r: r}
	if kind == Left {
		rs = padded(rs)
	}
	sc := joinScopes(ls, rs, outer)
	if j.On == nil {
		return a, sc, nil
	}
	x := &exprBinder{b: b, scope: sc, where: "ON"}
	on, err := x.condition(j.On)
	if err != nil {
		return nil, nil, err
	}
	if l, ok := on.(*expr.Literal); ok && l.Value == true {
		return a, sc, nil
	}
	if kind == Inner {
		return &filterRel{a, expr.Conjuncts(on)}, sc, nil
	}
	// The condition belongs to the right side, which may see the left.
	a.r = &filterRel{r, expr.Conjuncts(on)}
	return a, sc, nil
}

// usingJoin joins by columns of one name; the output has each such column once, in front.
func (b *binder) usingJoin(j *sql.Join, kind JoinKind, names []sql.Ident, l rel, ls *scope, r rel, rs, outer *scope) (rel, *scope, error) {
	out := &joinRel{kind: kind, l: l, r: r}
	sc := &scope{parent: outer, scans: append(slices.Clone(ls.scans), rs.scans...)}
	hideL, hideR := idSet{}, idSet{}
	var merged []scopeCol
	var full *projectRel
	for _, n := range names {
		lc, rc := ls.lookup(nil, n), rs.lookup(nil, n)
		for i, found := range [][]scopeCol{lc, rc} {
			side := [...]string{"left", "right"}[i]
			if len(found) == 0 {
				return nil, nil, b.errorf(n.Pos, fault.NotFound, "COLUMN_NOT_FOUND", "column %q of USING does not exist on the %s side", n.Name, side)
			}
			if len(found) > 1 {
				return nil, nil, b.errorf(n.Pos, fault.Invalid, "AMBIGUOUS_NAME", "column %q of USING is ambiguous on the %s side", n.Name, side)
			}
		}
		le, re := b.cols.ref(lc[0].id), b.cols.ref(rc[0].id)
		le.Null, re.Null = le.Null || lc[0].null, re.Null || rc[0].null
		c, err := expr.NewCompare(expr.Eq, le, re)
		if err != nil {
			return nil, nil, b.place(n.Pos, err)
		}
		out.conds = append(out.conds, c)
		hideL[lc[0].id], hideR[rc[0].id] = true, true
		m := scopeCol{name: lc[0].name, id: lc[0].id, merged: true}
		same := le.Typ.Equal(re.Typ)
		switch {
		case kind == Right && same:
			m.id = rc[0].id
		case kind == Full || !same:
			e, err := expr.NewCall("coalesce", []expr.Expr{le, re})
			if err != nil {
				return nil, nil, b.place(n.Pos, err)
			}
			if full == nil {
				full = &projectRel{}
			}
			m.id = b.cols.add(m.name, e.Type(), e.Nullable())
			full.list, full.cols = append(full.list, e), append(full.cols, m.id)
		}
		merged = append(merged, m)
	}
	sc.cols = merged
	for _, c := range ls.cols {
		c.hidden = c.hidden || hideL[c.id]
		sc.cols = append(sc.cols, c)
	}
	for _, c := range rs.cols {
		c.hidden = c.hidden || hideR[c.id]
		sc.cols = append(sc.cols, c)
	}
	if full == nil {
		return out, sc, nil
	}
	full.in = out
	for _, id := range out.out() {
		full.list, full.cols = append(full.list, b.cols.ref(id)), append(full.cols, id)
	}
	return full, sc, nil
}

// unnest joins in with the elements of arrays and the entries of maps. The arguments see left.
func (b *binder) unnest(in rel, u *sql.Unnest, outer, left *scope, pad bool) (rel, *scope, error) {
	around := left
	if around == nil {
		around = outer
	}
	x := &exprBinder{b: b, scope: around, rel: &in, where: "UNNEST"}
	n := &unnestRel{outer: pad, ordinality: u.Ordinality}
	s := &bound{}
	add := func(name string, t vector.Type, null bool) {
		id := b.cols.add(name, t, null)
		n.cols = append(n.cols, id)
		s.cols = append(s.cols, outCol{name, id})
	}
	several := len(u.Args) > 1
	var fields *projectRel // rows unnest to their fields
	for _, a := range u.Args {
		v, err := x.bind(a)
		if err != nil {
			return nil, nil, err
		}
		n.args = append(n.args, v)
		t := v.Type()
		switch t.Kind {
		case vector.Array:
			e := t.Fields[0].Type
			name := "_col" + strconv.Itoa(len(s.cols))
			if nm, ok := a.(*sql.Name); ok {
				name = nm.Parts[len(nm.Parts)-1].Name
			}
			if e.Kind == vector.Row {
				if fields == nil {
					fields = &projectRel{}
				}
				id := b.cols.add(name, e, true)
				n.cols = append(n.cols, id)
				for i, f := range e.Fields {
					if f.Name == "" {
						f.Name = "field" + strconv.Itoa(i)
					}
					fid := b.cols.add(f.Name, f.Type, true)
					fields.list, fields.cols = append(fields.list, &expr.FieldAccess{Arg: b.cols.ref(id), Index: i, Name: f.Name}), append(fields.cols, fid)
					s.cols = append(s.cols, outCol{f.Name, fid})
				}
				continue
			}
			add(name, e, t.Fields[0].Nullable || several || pad)
		case vector.Map:
			add("key", t.Fields[0].Type, several || pad)
			add("value", t.Fields[1].Type, true)
		case vector.Null:
			return nil, nil, b.errorf(a.At(), fault.Invalid, "TYPE_MISMATCH", "the type of the UNNEST argument is not known; use CAST")
		default:
			return nil, nil, b.errorf(a.At(), fault.Invalid, "TYPE_MISMATCH", "UNNEST takes arrays and maps, not %s", t)
		}
	}
	if u.Ordinality {
		add("ordinality", vector.Of(vector.BigInt), pad)
	}
	n.in = in
	sc, err := b.aliased(s, u.Alias)
	if fields == nil {
		return n, sc, err
	}
	for _, id := range n.out() {
		fields.list, fields.cols = append(fields.list, b.cols.ref(id)), append(fields.cols, id)
	}
	fields.in = n
	return fields, sc, err
}

// tableCall binds a function in FROM: unnest-like generators.
func (b *binder) tableCall(t *sql.TableCall, outer *scope) (rel, *scope, error) {
	c := t.Call
	name := fold(dotted(c.Name))
	switch name {
	case "range", "generate_series":
		x := &exprBinder{b: b, scope: outer, where: "a table function"}
		args, err := x.all(c.Args)
		if err != nil {
			return nil, nil, err
		}
		return b.sequence(t, name, args)
	}
	if last := fold(c.Name[len(c.Name)-1].Name); last == "table_changes" || last == "table_appends" {
		return b.changes(t, last)
	}
	return nil, nil, b.errorf(c.At(), fault.NotFound, "FUNCTION_NOT_FOUND", "there is no table function %q", dotted(c.Name))
}

// sequence is UNNEST(sequence(from, to, step)) under DuckDB's names; range leaves its end out.
func (b *binder) sequence(t *sql.TableCall, name string, args []expr.Expr) (rel, *scope, error) {
	one := &expr.Literal{Value: int64(1), Typ: vector.Of(vector.BigInt)}
	if len(args) == 1 {
		args = []expr.Expr{&expr.Literal{Value: int64(0), Typ: vector.Of(vector.BigInt)}, args[0]}
	}
	if len(args) < 2 || len(args) > 3 {
		return nil, nil, b.errorf(t.Call.At(), fault.Invalid, "INVALID_FUNCTION_ARGUMENT", "%s takes 1 to 3 arguments", name)
	}
	if name == "range" {
		if len(args) == 3 {
			return nil, nil, b.unsupported(t.Call.At(), "range with a step is not supported; use UNNEST(sequence(...))")
		}
		end, err := expr.NewCall("-", []expr.Expr{args[1], one})
		if err != nil {
			return nil, nil, b.place(t.Call.At(), err)
		}
		args[1] = end
	}
	e, err := expr.NewCall("sequence", args)
	if err != nil {
		return nil, nil, b.place(t.Call.At(), err)
	}
	id := b.cols.add(name, e.Type().Fields[0].Type, false)
	sc, err := b.aliased(&bound{cols: []outCol{{name, id}}}, t.Alias)
	return &unnestRel{in: oneRow(), args: []expr.Expr{e}, cols: []int{id}}, sc, err
}

// qualifier is the path that may stand in front of a table's columns.
func qualifier(a *sql.Alias, path ...string) []string {
	if a != nil {
		return []string{a.Name.Name}
	}
	// A namespace of several levels is one dotted name or several.
	return strings.Split(strings.Join(path, "."), ".")
}
