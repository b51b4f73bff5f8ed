//go:build unix

package spill

import (
	"os"
	"syscall"
)

// tryLock takes a lock that ends with the process; false when another process has it.
func tryLock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
