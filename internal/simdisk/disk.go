// Package simdisk is a directory of files in memory that loses, tears and spoils data as
// a real disk may; a seed decides. It is no kinder than a disk promises to be. Data not
// synced may or may not survive a loss of power, sector by sector. So may a name not
// synced.
package simdisk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
)

// Sector is how many bytes a disk writes whole or not at all.
const Sector = 512

// ErrCut is the error of calls in and after a loss of power.
var ErrCut = errors.New("the power is gone")

// Op is a kind of call that changes the disk.
type Op uint8

// The calls that change the disk.
const (
	Write Op = iota
	Sync
	Create
	Rename
	Remove
	SyncNames
	// Other is a change of data kept elsewhere, see [Disk.Do].
	Other
	ops
)

// String returns the name of the call.
func (o Op) String() string {
	return [ops]string{"write", "sync", "create", "rename", "remove", "sync of names", "other"}[o]
}

// Disk is a directory on a disk. A Disk must not be used by several goroutines.
type Disk struct {
	r *rand.Rand
	// names are the files as running programs see them; stable are the files with durable
	// names; renamed are the changes in between.
	names, stable map[string]*inode
	renamed       []renaming
	// power counts the losses of power: files opened before a loss are of no use.
	power int
	// cutIn, if above 0, counts down the calls until the power is lost; -1: it is lost.
	cutIn int
	// fail has the error for the next call of each kind.
	fail [ops]error
	// full keeps files from growing.
	full  bool
	calls [ops]int
	// takeBack, if not nil, undoes changes of [Disk.Do] at a loss of power.
	takeBack func()
}

// renaming changes a name: a creation if from is empty, a removal if to is empty.
type renaming struct {
	from, to string
	file     *inode
}

// New makes an empty disk that draws from r.
func New(r *rand.Rand) *Disk {
	return &Disk{r: r, names: make(map[string]*inode), stable: make(map[string]*inode)}
}

// CutIn makes the power fail in the n-th call from now on that changes the disk; the
// first call is 1. [Disk.Cut] decides whether that call still takes effect. 0 takes the
// loss back.
func (d *Disk) CutIn(n int) { d.cutIn = n }

// Fail makes the next call of a kind return an error. A failed sync leaves undecided
// which data is durable, and no later sync makes up for it.
func (d *Disk) Fail(o Op, err error) { d.fail[o] = err }

// Failing reports whether a call is still to fail.
func (d *Disk) Failing() bool { return d.fail != [ops]error{} }

// Fill makes the disk full, or gives it space again. Files keep the space that they have.
func (d *Disk) Fill(full bool) { d.full = full }

// Full reports whether the disk is full.
func (d *Disk) Full() bool { return d.full }

// Dead reports whether the power is lost, so that [Disk.Cut] has to be called before the
// disk can be used again.
func (d *Disk) Dead() bool { return d.cutIn < 0 }

// Calls returns the number of calls of a kind.
func (d *Disk) Calls(o Op) int { return d.calls[o] }

// begin counts a call and returns its error, if it fails.
func (d *Disk) begin(o Op) error {
	if d.Dead() {
		return ErrCut
	}
	d.calls[o]++
	if d.cutIn > 0 {
		if d.cutIn--; d.cutIn == 0 {
			d.cutIn = -1
			return ErrCut
		}
	}
	if err := d.fail[o]; err != nil {
		d.fail[o] = nil
		return err
	}
	return nil
}

// Do carries out a change of data that is kept elsewhere, such as a transaction of a
// database. The change is durable at once, whole or not at all. If its sync fails, the
// change may be durable or not made. Or programs see it, also after a restart, until a
// loss of power takes it back. In this case the next successful Do makes it durable as
// well. save keeps the data before such a change, and returns the function that brings it
// back.
func (d *Disk) Do(what func(), save func() (takeBack func())) error {
	if d.Dead() {
		return ErrCut
	}
	err := d.begin(Other)
	outcome := durably
	switch {
	case errors.Is(err, ErrCut):
		outcome = []outcomes{durably, notAtAll}[d.r.IntN(2)]
	case err != nil:
		outcome = []outcomes{durably, notAtAll, cached}[d.r.IntN(3)]
	}
	switch outcome {
	case durably:
		what()
		d.takeBack = nil
	case cached:
		if d.takeBack == nil {
			d.takeBack = save()
		}
		what()
	case notAtAll:
	}
	return err
}

// outcomes are the possible outcomes of a transaction.
type outcomes uint8

const (
	notAtAll outcomes = iota
	durably
	// cached: programs see the change, and the disk does not have it.
	cached
)

// List returns the names of all files, sorted.
func (d *Disk) List() ([]string, error) {
	if d.Dead() {
		return nil, ErrCut
	}
	return slices.Sorted(maps.Keys(d.names)), nil
}

// Create makes an empty file under a new name.
func (d *Disk) Create(name string) (*File, error) {
	if d.names[name] != nil {
		return nil, naming("create", name, fs.ErrExist)
	}
	err := d.begin(Create)
	if err == nil && d.full {
		err = syscall.ENOSPC
	}
	if err == nil || errors.Is(err, ErrCut) {
		d.change(renaming{to: name, file: newInode()})
	}
	if err != nil {
		return nil, naming("create", name, err)
	}
	return d.open(name), nil
}

// Open opens a file for reading and writing.
func (d *Disk) Open(name string) (*File, error) {
	if d.Dead() {
		return nil, naming("open", name, ErrCut)
	}
	if d.names[name] == nil {
		return nil, naming("open", name, fs.ErrNotExist)
	}
	return d.open(name), nil
}

func (d *Disk) open(name string) *File {
	return &File{d: d, name: name, file: d.names[name], power: d.power}
}

// Rename gives a file another name, and replaces a file of that name.
func (d *Disk) Rename(from, to string) error {
	f := d.names[from]
	if f == nil {
		return naming("rename", from, fs.ErrNotExist)
	}
	err := d.begin(Rename)
	if err == nil || errors.Is(err, ErrCut) {
		d.change(renaming{from: from, to: to, file: f})
	}
	return naming("rename", from, err)
}

// Remove removes a file.
func (d *Disk) Remove(name string) error {
	f := d.names[name]
	if f == nil {
		return naming("remove", name, fs.ErrNotExist)
	}
	err := d.begin(Remove)
	if err == nil || errors.Is(err, ErrCut) {
		d.change(renaming{from: name, file: f})
	}
	return naming("remove", name, err)
}

// Sync makes all names durable.
func (d *Disk) Sync() error {
	if err := d.begin(SyncNames); err != nil {
		if !errors.Is(err, ErrCut) {
			d.settleNames(d.draw())
		}
		return naming("sync", ".", err)
	}
	d.stable, d.renamed = maps.Clone(d.names), nil
	return nil
}

// change carries out a change of a name, which is durable once names are synced.
func (d *Disk) change(c renaming) {
	c.apply(d.names)
	d.renamed = append(d.renamed, c)
}

// apply changes a name, unless the name now has another file.
func (c *renaming) apply(names map[string]*inode) {
	if c.from != "" {
		if names[c.from] != c.file {
			return
		}
		delete(names, c.from)
	}
	if c.to != "" {
		names[c.to] = c.file
	}
}

// settleNames decides which changes of names are durable.
func (d *Disk) settleNames(keep keeping) {
	for i, c := range d.renamed {
		if keep.name(i, len(d.renamed)) {
			c.apply(d.stable)
		}
	}
	d.renamed = nil
}

// Cut loses the power and comes back with the data on the disk. The disk has all synced
// data, and as much of the rest as the seed decides. Open files are of no use afterwards.
func (d *Disk) Cut() { d.cut(d.draw()) }

// CutHard loses the power and all data that was not synced.
func (d *Disk) CutHard() { d.cut(keeping{style: nothing}) }

// Kill ends only the program that uses the disk: its writes can still be read, and its
// unsynced writes can still be lost.
func (d *Disk) Kill() {
	d.power++
	d.cutIn, d.fail = 0, [ops]error{}
}

func (d *Disk) cut(keep keeping) {
	// A file may have several names on the way from one to another.
	seen := make(map[*inode]bool)
	for _, names := range []map[string]*inode{d.stable, d.names} {
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if f := names[name]; !seen[f] {
				seen[f] = true
				f.settle(keep)
			}
		}
	}
	d.settleNames(keep)
	d.names = maps.Clone(d.stable)
	if d.takeBack != nil {
		d.takeBack()
		d.takeBack = nil
	}
	d.power++
	d.cutIn, d.fail = 0, [ops]error{}
}

// Clone copies the disk. The disk must hold no unsynced data: Clone comes after
// [Disk.Cut]. The copy draws from r.
func (d *Disk) Clone(r *rand.Rand) *Disk {
	c := New(r)
	for name, f := range d.names {
		c.names[name] = &inode{data: slices.Clone(f.data)}
		c.stable[name] = c.names[name]
	}
	return c
}

// Same reports whether two disks have the same files.
func (d *Disk) Same(other *Disk) bool {
	return maps.EqualFunc(d.names, other.names, func(a, b *inode) bool { return bytes.Equal(a.data, b.data) })
}

// Size returns the length of a file, 0 if there is no such file.
func (d *Disk) Size(name string) int64 {
	if f := d.names[name]; f != nil {
		return int64(len(f.data))
	}
	return 0
}

// Used returns the length of a file without the zeros at its end.
func (d *Disk) Used(name string) int64 {
	f := d.names[name]
	if f == nil {
		return 0
	}
	return int64(len(bytes.TrimRight(f.data, "\x00")))
}

// Flip changes a bit of a file, durably.
func (d *Disk) Flip(name string, bit int64) { d.names[name].data[bit/8] ^= 1 << (bit % 8) }

// Truncate shortens a file to size, durably.
func (d *Disk) Truncate(name string, size int64) {
	f := d.names[name]
	f.settle(keeping{style: everything})
	f.data = f.data[:size]
}

// naming wraps an error of a call; nil stays nil.
func naming(call, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: call, Path: name, Err: err}
}

// String lists the files.
func (d *Disk) String() string {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		_, _ = fmt.Fprintf(&b, "%s %d\n", name, len(d.names[name].data)) // a buffer takes all
	}
	return b.String()
}
