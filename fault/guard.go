package fault

import (
	"fmt"
	"hash/fnv"
	"runtime/debug"
)

// Guard runs f and turns a panic in it into an Internal error, whose id the log can be searched for.
// Every goroutine that works on bytes from outside runs under one: a panic that nobody catches would end the process.
func Guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			stack := debug.Stack()
			h := fnv.New32a()
			_, _ = h.Write(stack)
			err = &Error{Kind: Internal, ID: table[Internal].name, Text: fmt.Sprintf("panic %08x: %v", h.Sum32(), p),
				Cause: fmt.Errorf("%v\n%s", p, stack)}
		}
	}()
	return f()
}
