package expr

import (
	"math"

	"github.com/skua-db/skua/vector"
)

func init() {
	pick := func(want int) kernel {
		return func(x *evalCall, out *vector.Vector) error {
			t := out.Type
			return fnN(func(x *evalCall, args []vector.Value) (vector.Value, error) {
				best := args[0]
				for _, a := range args[1:] {
					if isNaN(a) {
						continue // as min and max pass over it
					}
					if isNaN(best) {
						best = a
						continue
					}
					if c := CompareValues(t, a, best); c*want > 0 {
						best = a
					}
				}
				return best, nil
			})(x, out)
		}
	}
	order := returns(func(t []vector.Type) (vector.Type, error) {
		if !Orderable(t[0]) {
			return unknown, mismatch("greatest and least need an orderable type, not %s", t[0])
		}
		return t[0], nil
	})
	def("greatest", "(T...) T", "the largest argument; null when any is null", pick(1), order)
	def("least", "(T...) T", "the smallest argument; null when any is null", pick(-1), order)
	defMake("typeof", "(any) varchar", "the type of the argument", func(b *binding) (kernel, error) {
		s := b.args[0].Type().String()
		return fn0(func(*evalCall) (string, error) { return s, nil }), nil
	}, onNull)
	def("current_user", "() varchar", "the user of the session", fn0(func(x *evalCall) (string, error) { return x.ctx.User, nil }), session)
	def("current_catalog", "() varchar", "the session's catalog", fn0(func(x *evalCall) (string, error) { return x.ctx.Catalog, nil }), session)
	def("current_schema", "() varchar", "the session's schema", fn0(func(x *evalCall) (string, error) { return x.ctx.Schema, nil }), session)
	def("version", "() varchar", "the server's SQL version", fn0(func(x *evalCall) (string, error) { return "Skua", nil }))
}

func isNaN(v vector.Value) bool {
	switch f := v.(type) {
	case float64:
		return math.IsNaN(f)
	case float32:
		return f != f
	}
	return false
}
