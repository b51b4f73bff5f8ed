package expr

import (
	"hash/maphash"
	"reflect"
	"slices"

	"github.com/skua-db/skua/vector"
)

// Walk calls f on e and, while f returns true, on everything below it, parents first.
func Walk(e Expr, f func(Expr) bool) {
	if e == nil || !f(e) {
		return
	}
	for _, c := range e.Children() {
		Walk(c, f)
	}
}

// Rewrite replaces every node of e by what f makes of it, children first. f may return its argument.
func Rewrite(e Expr, f func(Expr) Expr) Expr {
	if e == nil {
		return nil
	}
	old := e.Children()
	var kids []Expr
	for i, c := range old {
		n := Rewrite(c, f)
		if n != c && kids == nil {
			kids = slices.Clone(old)
		}
		if kids != nil {
			kids[i] = n
		}
	}
	if kids != nil {
		e = e.With(kids)
	}
	return f(e)
}

// Columns lists the distinct column positions in e, ascending.
func Columns(e Expr) []int {
	var ix []int
	Walk(e, func(x Expr) bool {
		if c, ok := x.(*Column); ok {
			ix = append(ix, c.Index)
		}
		return true
	})
	slices.Sort(ix)
	return slices.Compact(ix)
}

// Volatile reports whether e may give different results for equal inputs within one run (random, uuid).
func Volatile(e Expr) bool {
	found := false
	Walk(e, func(x Expr) bool {
		if c, ok := x.(*Call); ok && c.Fn.volatile {
			found = true
		}
		return !found
	})
	return found
}

// Conjuncts splits a predicate at its top-level ANDs. A nil predicate has none.
func Conjuncts(e Expr) []Expr {
	if e == nil {
		return nil
	}
	a, ok := e.(*And)
	if !ok {
		return []Expr{e}
	}
	var out []Expr
	for _, x := range a.Args {
		out = append(out, Conjuncts(x)...)
	}
	return out
}

// Equal compares structure: same nodes, same columns, same constants. Names of columns do not count.
func Equal(a, b Expr) bool {
	if a == b {
		return true
	}
	if a == nil || b == nil || reflect.TypeOf(a) != reflect.TypeOf(b) {
		return false
	}
	switch x := a.(type) {
	case *Column:
		return x.Index == b.(*Column).Index
	case *Literal:
		y := b.(*Literal)
		return x.Typ.Equal(y.Typ) && identical(x.Value, y.Value)
	case *Param:
		return x.Index == b.(*Param).Index
	case *LambdaVar:
		return x.ID == b.(*LambdaVar).ID
	case *Subquery:
		return x.ID == b.(*Subquery).ID
	case *Compare:
		if x.Op != b.(*Compare).Op {
			return false
		}
	case *IsNull:
		if x.Negated != b.(*IsNull).Negated {
			return false
		}
	case *In:
		if x.Negated != b.(*In).Negated {
			return false
		}
	case *Like:
		y := b.(*Like)
		if x.Negated != y.Negated || x.Escape != y.Escape || x.CaseInsensitive != y.CaseInsensitive {
			return false
		}
	case *Cast:
		y := b.(*Cast)
		if x.Try != y.Try || !x.To.Equal(y.To) {
			return false
		}
	case *FieldAccess:
		if x.Index != b.(*FieldAccess).Index {
			return false
		}
	case *Call:
		y := b.(*Call)
		if x.Fn != y.Fn || !x.Typ.Equal(y.Typ) || x.Fn.volatile {
			return false
		}
	case *Lambda:
		y := b.(*Lambda)
		if len(x.Params) != len(y.Params) {
			return false
		}
		// Parameters have ids of their own: compare the bodies after renaming b's to a's.
		return Equal(x.Body, renameLambda(y, x.Params))
	}
	p, q := a.Children(), b.Children()
	if len(p) != len(q) {
		return false
	}
	for i := range p {
		if !Equal(p[i], q[i]) {
			return false
		}
	}
	return true
}

func renameLambda(l *Lambda, to []LambdaParam) Expr {
	return Rewrite(l.Body, func(e Expr) Expr {
		if v, ok := e.(*LambdaVar); ok {
			for i, p := range l.Params {
				if p.ID == v.ID {
					return &LambdaVar{ID: to[i].ID, Name: to[i].Name, Typ: to[i].Typ}
				}
			}
		}
		return e
	})
}

// identical compares constants bit for bit, so that NaN is itself and 0.0 is not -0.0.
func identical(a, b vector.Value) bool {
	switch x := a.(type) {
	case float64:
		y, ok := b.(float64)
		return ok && (x == y || x != x && y != y)
	case float32:
		y, ok := b.(float32)
		return ok && (x == y || x != x && y != y)
	}
	return reflect.DeepEqual(a, b)
}

var hashSeed = maphash.MakeSeed()

// Hash gives equal expressions equal hashes. It differs between processes.
func Hash(e Expr) uint64 {
	var h maphash.Hash
	h.SetSeed(hashSeed)
	hashInto(&h, e)
	return h.Sum64()
}

func hashInto(h *maphash.Hash, e Expr) {
	h.WriteString(reflect.TypeOf(e).Elem().Name())
	switch x := e.(type) {
	case *Column:
		h.WriteByte(byte(x.Index))
	case *Param:
		h.WriteByte(byte(x.Index))
	case *Subquery:
		h.WriteByte(byte(x.ID))
	case *Literal:
		h.WriteString(literalText(x.Value, x.Typ))
	case *Compare:
		h.WriteByte(byte(x.Op))
	case *Cast:
		h.WriteString(x.To.String())
	case *Call:
		h.WriteString(x.Fn.Name)
	}
	for _, c := range e.Children() {
		hashInto(h, c)
	}
}
