package expr

import (
	"encoding/binary"

	"github.com/skua-db/skua/fault"
)

const maxGeometryDepth = 100

// checkWKB walks a well-known binary and holds every count against the bytes that remain, which the geometry library does
// not do before it allocates. The value must end where its bytes do.
func checkWKB(b []byte) error {
	rest, err := walkWKB(b, 0)
	if err == nil && len(rest) > 0 {
		err = fault.New(fault.Corrupt, "geometry value: %d bytes after its end", len(rest))
	}
	return err
}

func walkWKB(b []byte, depth int) ([]byte, error) {
	bad := func(what string) ([]byte, error) { return nil, fault.New(fault.Corrupt, "geometry value: %s", what) }
	if depth > maxGeometryDepth {
		return bad("collections are nested too deep")
	}
	const head = 5
	if len(b) < head || b[0] > 1 {
		return bad("not well-known binary")
	}
	var order binary.ByteOrder = binary.BigEndian
	if b[0] == 1 {
		order = binary.LittleEndian
	}
	kind := order.Uint32(b[1:])
	b = b[head:]
	// ISO: thousands tell the dimensions.
	if kind >= 4000 {
		return bad("its type is not one of ISO well-known binary")
	}
	point := 16
	switch kind / 1000 {
	case 1, 2:
		point = 24
	case 3:
		point = 32
	}
	count := func(least int) (int, bool) {
		if len(b) < 4 {
			return 0, false
		}
		n := order.Uint32(b)
		b = b[4:]
		return int(n), int64(n)*int64(least) <= int64(len(b))
	}
	const short = "a count reaches past its end"
	switch kind % 1000 {
	case 1:
		if len(b) < point {
			return bad("a point reaches past its end")
		}
		return b[point:], nil
	case 2:
		n, ok := count(point)
		if !ok {
			return bad(short)
		}
		return b[n*point:], nil
	case 3:
		rings, ok := count(4)
		if !ok {
			return bad(short)
		}
		for range rings {
			n, ok := count(point)
			if !ok {
				return bad(short)
			}
			b = b[n*point:]
		}
		return b, nil
	case 4, 5, 6, 7:
		n, ok := count(head)
		if !ok {
			return bad(short)
		}
		for range n {
			var err error
			if b, err = walkWKB(b, depth+1); err != nil {
				return nil, err
			}
		}
		return b, nil
	}
	return bad("its type is not known")
}
