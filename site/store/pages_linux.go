package store

import (
	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// dropPages takes the pages of a file out of the memory of this process, as far as they
// were read. They stay in the system's cache, and come back where they are read again.
// That is advice: where the system does not take it, nothing but memory is lost.
func dropPages(db *bolt.DB) error {
	return db.View(func(tx *bolt.Tx) error {
		dropPagesOf(tx)
		return nil
	})
}

// dropPagesOf is dropPages of a file that a transaction reads. The file is not mapped anew
// meanwhile.
func dropPagesOf(tx *bolt.Tx) {
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, tx.DB().Info().Data, uintptr(tx.Size()), unix.MADV_DONTNEED)
}
