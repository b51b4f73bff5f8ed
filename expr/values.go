package expr

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"github.com/skua-db/skua/vector"
)

// compareValues3 compares two values with SQL's three-valued logic: the outcome, and whether it is null.
func compareValues3(op CompareOp, t vector.Type, a, b vector.Value) (res, null bool) {
	switch op {
	case Distinct, NotDistinct:
		return equalNullSafe(t, a, b) == (op == NotDistinct), false
	}
	if a == nil || b == nil {
		return false, true
	}
	if op == Eq || op == Ne {
		eq, null := equal3(t, a, b)
		return eq == (op == Eq), null
	}
	c, null := order3(t, a, b)
	return opHolds(op, c), null
}

// equal3 is = for values that may hold nulls inside: false as soon as a part differs, else null when a part is null.
func equal3(t vector.Type, a, b vector.Value) (eq, null bool) {
	if a == nil || b == nil {
		return false, true
	}
	switch t.Kind {
	case vector.Array, vector.Row:
		x, y := a.([]vector.Value), b.([]vector.Value)
		if len(x) != len(y) {
			return false, false
		}
		for i := range x {
			e, n := equal3(elemType(t, i), x[i], y[i])
			if n {
				null = true
			} else if !e {
				return false, false
			}
		}
		return !null, null
	case vector.Map:
		x, y := a.([]vector.Pair), b.([]vector.Pair)
		if len(x) != len(y) {
			return false, false
		}
		for _, p := range x {
			i := findKey(t.Fields[0].Type, y, p.Key)
			if i < 0 {
				return false, false
			}
			e, n := equal3(t.Fields[1].Type, p.Value, y[i].Value)
			if n {
				null = true
			} else if !e {
				return false, false
			}
		}
		return !null, null
	case vector.JSON:
		return canonicalJSON(a.(string)) == canonicalJSON(b.(string)), false
	case vector.Double:
		return a.(float64) == b.(float64), false
	case vector.Real:
		return a.(float32) == b.(float32), false
	}
	return CompareValues(t, a, b) == 0, false
}

func canonicalJSON(s string) string {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return s
	}
	p, err := json.Marshal(v)
	if err != nil {
		return s
	}
	return string(p)
}

func elemType(t vector.Type, i int) vector.Type {
	if t.Kind == vector.Array {
		return t.Fields[0].Type
	}
	return t.Fields[i].Type
}

func findKey(t vector.Type, ps []vector.Pair, k vector.Value) int {
	for i, p := range ps {
		if equalNullSafe(t, p.Key, k) {
			return i
		}
	}
	return -1
}

// order3 orders arrays and rows element by element; null as soon as an undecided part is null.
func order3(t vector.Type, a, b vector.Value) (c int, null bool) {
	if a == nil || b == nil {
		return 0, true
	}
	if t.Kind == vector.Array || t.Kind == vector.Row {
		x, y := a.([]vector.Value), b.([]vector.Value)
		for i := range min(len(x), len(y)) {
			c, null := order3(elemType(t, i), x[i], y[i])
			if c != 0 || null {
				return c, null
			}
		}
		return cmp.Compare(len(x), len(y)), false
	}
	return CompareValues(t, a, b), false
}

// equalNullSafe is IS NOT DISTINCT FROM: nulls are equal, NaN equals itself, -0.0 equals 0.0, maps compare regardless of order.
func equalNullSafe(t vector.Type, a, b vector.Value) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	if t.Kind == vector.Map {
		x, y := a.([]vector.Pair), b.([]vector.Pair)
		if len(x) != len(y) {
			return false
		}
		for _, p := range x {
			i := findKey(t.Fields[0].Type, y, p.Key)
			if i < 0 || !equalNullSafe(t.Fields[1].Type, p.Value, y[i].Value) {
				return false
			}
		}
		return true
	}
	if t.Kind == vector.JSON {
		return canonicalJSON(a.(string)) == canonicalJSON(b.(string))
	}
	return CompareValues(t, a, b) == 0
}

// CompareValues is the total order of ORDER BY for values of type t: null last, NaN after every number, -0.0 equal to 0.0, text
// by code points.
func CompareValues(t vector.Type, a, b vector.Value) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	switch x := a.(type) {
	case bool:
		y := b.(bool)
		switch {
		case x == y:
			return 0
		case y:
			return -1
		}
		return 1
	case int32:
		return cmp.Compare(x, b.(int32))
	case int64:
		return cmp.Compare(x, b.(int64))
	case vector.Int128:
		return x.Cmp(b.(vector.Int128))
	case float32:
		return compareFloats(float64(x), float64(b.(float32)))
	case float64:
		return compareFloats(x, b.(float64))
	case string:
		return bytes.Compare([]byte(x), []byte(b.(string)))
	case []vector.Value:
		y := b.([]vector.Value)
		for i := range min(len(x), len(y)) {
			if c := CompareValues(elemType(t, i), x[i], y[i]); c != 0 {
				return c
			}
		}
		return cmp.Compare(len(x), len(y))
	case []vector.Pair:
		y := b.([]vector.Pair)
		for i := range min(len(x), len(y)) {
			if c := CompareValues(t.Fields[0].Type, x[i].Key, y[i].Key); c != 0 {
				return c
			}
			if c := CompareValues(t.Fields[1].Type, x[i].Value, y[i].Value); c != 0 {
				return c
			}
		}
		return cmp.Compare(len(x), len(y))
	}
	return 0
}

func compareFloats(x, y float64) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	case x == y:
		return 0
	case x != x && y != y:
		return 0
	case x != x:
		return 1
	}
	return -1
}
