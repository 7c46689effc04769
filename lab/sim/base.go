package sim

import (
	"bytes"
	"syscall"

	"github.com/tidwall/btree"

	"github.com/samya-db/samya/internal/simdisk"
	"github.com/samya-db/samya/site/journal"
)

// logDir is a simulated disk as the log sees it.
type logDir struct{ *simdisk.Disk }

var _ journal.Dir = logDir{}

// Create implements journal.Dir.
func (d logDir) Create(name string) (journal.File, error) { return asFile(d.Disk.Create(name)) }

// Open implements journal.Dir.
func (d logDir) Open(name string) (journal.File, error) { return asFile(d.Disk.Open(name)) }

// asFile returns a nil File if there is no file, not a File that holds a nil pointer.
func asFile(f *simdisk.File, err error) (journal.File, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

// base is the ordered base that the log is carried over to: transactions on the same
// disk, each durable whole or not at all. After a failed sync, programs may see a
// transaction that a loss of power takes back.
type base struct {
	disk    *simdisk.Disk
	buckets [256]*btree.Map[string, []byte]
	through journal.Number
	known   bool
}

var _ journal.Base = (*base)(nil)

// clone copies it, onto another disk.
func (b *base) clone(disk *simdisk.Disk) *base {
	c := *b
	c.disk = disk
	for i, m := range b.buckets {
		if m != nil {
			c.buckets[i] = m.Copy()
		}
	}
	return &c
}

// Through implements journal.Base.
func (b *base) Through() (journal.Number, bool, error) { return b.through, b.known, nil }

// Apply implements journal.Base.
func (b *base) Apply(ops []journal.Op, through *journal.Number) error {
	if b.disk.Full() {
		return syscall.ENOSPC
	}
	return b.disk.Do(func() {
		for i := range ops {
			b.apply(&ops[i])
		}
		if through != nil {
			b.through, b.known = *through, true
		}
	}, func() func() {
		saved := b.clone(b.disk)
		return func() { *b = *saved }
	})
}

func (b *base) apply(op *journal.Op) {
	m := b.buckets[op.Bucket]
	if m == nil {
		m = new(btree.Map[string, []byte])
		b.buckets[op.Bucket] = m
	}
	switch op.Kind {
	case journal.Put:
		m.Set(string(op.Key), bytes.Clone(op.Value))
	case journal.Delete:
		m.Delete(string(op.Key))
	case journal.DeleteBelow:
		for {
			key, _, found := m.Min()
			if !found || key >= string(op.Key) {
				return
			}
			m.PopMin()
		}
	}
}

// Each implements journal.Base.
func (b *base) Each(bucket journal.Bucket, f func(key, value []byte) error) error {
	m := b.buckets[bucket]
	if m == nil {
		return nil
	}
	var err error
	m.Scan(func(key string, value []byte) bool {
		err = f([]byte(key), value)
		return err == nil
	})
	return err
}
