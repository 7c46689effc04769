package replica

import (
	"bytes"
	"errors"
	"slices"
)

// KV is a linearizable store of keys with transactions, such as etcd. Its calls may be
// concurrent.
type KV interface {
	// Do carries out a transaction. An error that wraps ErrRefused says that nothing was
	// done; after any other error that is unknown, also later on.
	Do(t *Txn) (*Done, error)
	// Read returns the entries with from <= key < to in the order of their keys, at most
	// limit of them unless limit is 0, after each transaction that had ended before.
	Read(from, to string, limit int) ([]Entry, error)
}

// ErrRefused: the store did nothing, and told so.
var ErrRefused = errors.New("the store of the log refuses the change")

// Txn is a transaction: Then is carried out if every guard holds, otherwise the keys of
// Else are read.
type Txn struct {
	If   []Guard
	Then []Change
	Else []string
}

// Clone returns a copy that shares no memory.
func (t *Txn) Clone() *Txn {
	c := &Txn{If: slices.Clone(t.If), Then: slices.Clone(t.Then), Else: slices.Clone(t.Else)}
	for i := range c.Then {
		c.Then[i].Value = bytes.Clone(c.Then[i].Value)
	}
	return c
}

// Guard is a condition on a key.
type Guard struct {
	Key string
	// Rev is the revision of the last change of the key; Absent if there is no such key;
	// Present if the key must be there.
	Rev int64
}

// Revisions that stand for conditions.
const (
	Absent  int64 = 0
	Present int64 = -1
)

// Change puts a value, or deletes keys.
type Change struct {
	Key   string
	Value []byte
	// To, unless empty, deletes all keys from Key on and below To.
	To string
}

// Done is the outcome of a transaction.
type Done struct {
	// Held says that all guards held. Rev is then the revision of the changes.
	Held bool
	Rev  int64
	// Found are the entries of Else that there are, if a guard failed.
	Found []Entry
}

// Entry is a key with a value, and the revision of the last change.
type Entry struct {
	Key   string
	Value []byte
	Rev   int64
}

// found returns the entry of a key.
func (d *Done) found(key string) (e Entry, ok bool) {
	for _, e := range d.Found {
		if e.Key == key {
			return e, true
		}
	}
	return Entry{}, false
}
