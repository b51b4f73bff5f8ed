package storage

import "github.com/skua-db/skua/fault"

func tooLarge(path string, size, max int64) error {
	return fault.New(fault.Exhausted, "object %s has %d bytes, more than the %d that may be read at once", path, size, max)
}
