package expr

import "github.com/skua-db/skua/fault"

func init() {
	// A predicate over the rows that a recursive query has left when it may not go on. It is volatile, so that it stays where the
	// planner puts it and is asked only about rows that are there.
	def("recursion_limit", "(bigint) boolean", "fails for every row", fn1(func(_ *evalCall, depth int64) (bool, error) {
		return false, fault.WithID(fault.Unsupported, "NOT_SUPPORTED", "recursion depth limit exceeded (%d): a recursive query has rows left after that many steps; the session option max_recursion_depth allows more", depth)
	}), volatile, hidden)
}
