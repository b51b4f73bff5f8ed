package prune

import (
	"bytes"
	"sort"

	"github.com/skua-db/skua/expr"
)

// eval gives the outcomes that a filter's node may have in the rows of src: a superset of those that occur.
func (n *node) eval(src Source) outcome {
	switch n.op {
	case opConst:
		return n.mask
	case opAnd:
		m := isTrue
		for _, k := range n.kids {
			if m = and(m, k.eval(src)); m == isFalse {
				break
			}
		}
		return m
	case opOr:
		m := isFalse
		for _, k := range n.kids {
			if m = not(and(not(m), not(k.eval(src)))); m == isTrue {
				break
			}
		}
		return m
	case opNot:
		return not(n.kids[0].eval(src))
	case opIsNull:
		d := n.l.domain(src)
		var m outcome
		if d.mayNull {
			m |= isTrue
		}
		if d.mayValue {
			m |= isFalse
		}
		return m
	case opCompare:
		l, r := n.l.domain(src), n.r.domain(src)
		m := compareDomains(n.cmp, &l, &r, false)
		if l.class == cUUID || r.class == cUUID {
			m |= compareDomains(n.cmp, &l, &r, true)
		}
		return m
	case opIn:
		d := n.l.domain(src)
		return n.in(&d)
	case opPrefix:
		d := n.l.domain(src)
		return n.prefix(&d)
	case opBoolTerm:
		d := n.l.domain(src)
		var m outcome
		if d.mayNull {
			m |= isNull
		}
		if d.mayValue {
			if !d.hasMax || d.max.i >= 1 {
				m |= isTrue
			}
			if !d.hasMin || d.min.i <= 0 {
				m |= isFalse
			}
		}
		return m
	}
	return anything
}

func and(a, b outcome) outcome {
	var m outcome
	if a&isTrue != 0 && b&isTrue != 0 {
		m |= isTrue
	}
	if a&isFalse != 0 || b&isFalse != 0 {
		m |= isFalse
	}
	if a&isNull != 0 && b&(isNull|isTrue) != 0 || b&isNull != 0 && a&isTrue != 0 {
		m |= isNull
	}
	return m
}

func not(a outcome) outcome {
	m := a & isNull
	if a&isTrue != 0 {
		m |= isFalse
	}
	if a&isFalse != 0 {
		m |= isTrue
	}
	return m
}

func compareDomains(op expr.CompareOp, l, r *Domain, signed bool) outcome {
	switch op {
	case expr.Distinct:
		return isTrue | isFalse
	case expr.NotDistinct:
		m := isFalse
		if l.mayNull && r.mayNull || compareDomains(expr.Eq, l, r, signed)&isTrue != 0 || l.mayNaN && r.mayNaN {
			m |= isTrue
		}
		return m
	}
	var m outcome
	if l.mayNull || r.mayNull {
		m |= isNull
	}
	if !l.mayValue || !r.mayValue {
		return m
	}
	if l.mayNaN || r.mayNaN {
		if op == expr.Ne {
			m |= isTrue
		} else {
			m |= isFalse
		}
	}
	if l.class == cNone || r.class == cNone {
		return m | isTrue | isFalse
	}
	// Whether some value of l may lie below, above or at some value of r.
	below := !l.hasMin || !r.hasMax || compare(l.class, &l.min, &r.max, signed) < 0
	above := !l.hasMax || !r.hasMin || compare(l.class, &l.max, &r.min, signed) > 0
	equal := (!l.hasMin || !r.hasMax || compare(l.class, &l.min, &r.max, signed) <= 0) &&
		(!l.hasMax || !r.hasMin || compare(l.class, &l.max, &r.min, signed) >= 0)
	if equal && r.isPoint() {
		equal = l.inBuckets(&r.min)
	}
	if equal && l.isPoint() {
		equal = r.inBuckets(&l.min)
	}
	var yes, no bool
	switch op {
	case expr.Eq:
		yes, no = equal, below || above
	case expr.Ne:
		yes, no = below || above, equal
	case expr.Lt:
		yes, no = below, above || equal
	case expr.Le:
		yes, no = below || equal, above
	case expr.Gt:
		yes, no = above, below || equal
	case expr.Ge:
		yes, no = above || equal, below
	}
	if yes {
		m |= isTrue
	}
	if no {
		m |= isFalse
	}
	return m
}

func (n *node) in(d *Domain) outcome {
	var m outcome
	if d.mayNull {
		m |= isNull
	}
	if !d.mayValue {
		return m
	}
	if n.listNull {
		m |= isNull
	} else {
		m |= isFalse
	}
	if d.class == cNone {
		return m | isTrue
	}
	at, end := 0, len(n.list)
	if d.class != cUUID { // whose bounds may follow another order than the list
		if d.hasMin {
			at = sort.Search(len(n.list), func(i int) bool { return compare(d.class, &n.list[i], &d.min, false) >= 0 })
		}
		if d.hasMax {
			end = sort.Search(len(n.list), func(i int) bool { return compare(d.class, &n.list[i], &d.max, false) > 0 })
		}
	}
	for ; at < end; at++ {
		if d.class == cUUID && !d.holds(&n.list[at], false) && !d.holds(&n.list[at], true) {
			continue
		}
		if d.inBuckets(&n.list[at]) {
			m |= isTrue
			if !d.mayNaN && d.isPoint() {
				m &^= isFalse
				if !d.mayNull {
					m &^= isNull
				}
			}
			break
		}
	}
	return m
}

func (d *Domain) holds(v *datum, signed bool) bool {
	return (!d.hasMin || compare(d.class, &d.min, v, signed) <= 0) && (!d.hasMax || compare(d.class, v, &d.max, signed) <= 0)
}

func (n *node) prefix(d *Domain) outcome {
	var m outcome
	if d.mayNull {
		m |= isNull
	}
	if !d.mayValue {
		return m
	}
	p := n.list[0].s
	// Everything that starts with p lies at or above p, and below what follows all of them.
	yes := (!d.hasMax || bytes.Compare(d.max.s, p) >= 0) &&
		(!d.hasMin || bytes.Compare(d.min.s, p) <= 0 || bytes.HasPrefix(d.min.s, p))
	if yes {
		m |= isTrue
	}
	if !n.whole || !d.hasMin || !d.hasMax || !bytes.HasPrefix(d.min.s, p) || !bytes.HasPrefix(d.max.s, p) {
		m |= isFalse
	}
	return m
}

// Meet reports whether a value of l, null or NaN may be equal to one of r, nulls and NaN being equal to themselves. The domains are of one
// type.
func Meet(l, r *Domain) bool {
	return compareDomains(expr.NotDistinct, l, r, false)&isTrue != 0 || l.class == cUUID && compareDomains(expr.NotDistinct, l, r, true)&isTrue != 0
}
