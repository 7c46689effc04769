package simdisk

import (
	"errors"
	"io"
	"io/fs"
	"slices"
	"syscall"
)

// inode is a file, whatever its name.
type inode struct {
	// data is what running programs read.
	data []byte
	// unsynced are the sectors written since the last sync, in the order of their
	// first writes, and where they stand in that list.
	unsynced []sector
	at       map[int]int
	// sizes are those that the file had since then, the first of them then. It is
	// empty if the size did not change.
	sizes []int
	// under, if not nil, is what is on the disk after a sync that failed: what
	// programs read is not, and later syncs make durable what was written since.
	under []byte
}

// sector is one that was written: what it held when it was last synced, and
// after each write since.
type sector struct {
	index  int
	states [][]byte
}

func newInode() *inode { return new(inode) }

// zeros is a sector of a file that was made longer.
var zeros [Sector]byte

// synced is what is on the disk, but for sectors that were written since.
func (f *inode) synced() []byte {
	if f.under != nil {
		return f.under
	}
	return f.data
}

// state copies what a sector holds; behind the end of the file that is zeros.
func state(data []byte, index int) []byte {
	from := index * Sector
	if from >= len(data) {
		return zeros[:]
	}
	held := data[from:min(from+Sector, len(data))]
	if len(held) == Sector && [Sector]byte(held) == zeros {
		return zeros[:]
	}
	s := make([]byte, Sector)
	copy(s, held)
	return s
}

// touch notes what the sectors of a range hold before they are written for the
// first time.
func (f *inode) touch(from, to int) {
	if f.at == nil {
		f.at = make(map[int]int)
	}
	for i := from / Sector; i*Sector < to; i++ {
		if _, found := f.at[i]; !found {
			f.at[i] = len(f.unsynced)
			f.unsynced = append(f.unsynced, sector{index: i, states: [][]byte{state(f.synced(), i)}})
		}
	}
}

// wrote notes what they hold after a write.
func (f *inode) wrote(from, to int) {
	for i := from / Sector; i*Sector < to; i++ {
		s := &f.unsynced[f.at[i]]
		s.states = append(s.states, state(f.data, i))
	}
}

func (f *inode) write(b []byte, from int) {
	to := from + len(b)
	f.touch(from, to)
	if to > len(f.data) {
		f.grow(to)
	}
	copy(f.data[from:], b)
	f.wrote(from, to)
}

// grow makes the file longer by zeros.
func (f *inode) grow(size int) {
	if len(f.sizes) == 0 {
		f.sizes = append(f.sizes, len(f.synced()))
	}
	f.sizes = append(f.sizes, size)
	was := len(f.data)
	f.data = slices.Grow(f.data, size-was)[:size]
	clear(f.data[was:])
}

// sync makes all durable that was written since the last one.
func (f *inode) sync() {
	if f.under != nil {
		f.under = f.decide(keeping{style: everything})
	}
	f.forget()
}

func (f *inode) forget() {
	f.unsynced, f.sizes = nil, nil
	clear(f.at)
}

// decide returns what is on the disk, with what is kept of the unsynced.
func (f *inode) decide(keep keeping) []byte {
	synced := f.synced()
	size := len(synced)
	if len(f.sizes) > 0 {
		size = keep.size(f.sizes)
	}
	disk := make([]byte, max(size, len(synced)))
	copy(disk, synced)
	for i, s := range f.unsynced {
		if from := s.index * Sector; from < len(disk) {
			copy(disk[from:], s.states[keep.sector(i, len(f.unsynced), len(s.states))])
		}
	}
	return disk[:size]
}

// settle decides what of the unsynced is on the disk, which programs read then.
func (f *inode) settle(keep keeping) {
	if f.under == nil && len(f.unsynced) == 0 && len(f.sizes) == 0 {
		return
	}
	f.data, f.under = f.decide(keep), nil
	f.forget()
}

// spoil decides it in a sync that fails. Programs go on to read what they wrote.
func (f *inode) spoil(keep keeping) {
	f.under = f.decide(keep)
	f.forget()
}

// File is an open file.
type File struct {
	d     *Disk
	name  string
	file  *inode
	power int
}

// dead reports whether the file was opened before the power was lost.
func (f *File) dead() bool { return f.power != f.d.power || f.d.Dead() }

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(b []byte, from int64) (int, error) {
	if f.dead() {
		return 0, naming("read", f.name, ErrCut)
	}
	if from < 0 {
		return 0, naming("read", f.name, fs.ErrInvalid)
	}
	if from >= int64(len(f.file.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.file.data[from:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements io.WriterAt. What it wrote is durable after the next Sync.
func (f *File) WriteAt(b []byte, from int64) (int, error) {
	if from < 0 {
		return 0, naming("write", f.name, fs.ErrInvalid)
	}
	if f.dead() {
		return 0, naming("write", f.name, ErrCut)
	}
	err := f.d.begin(Write)
	part := b
	switch {
	case errors.Is(err, ErrCut), err == nil:
	default:
		part = b[:f.d.r.IntN(len(b)+1)]
	}
	if room := int64(len(f.file.data)) - from; err == nil && f.d.full && int64(len(b)) > room {
		part, err = b[:max(room, 0)], syscall.ENOSPC
	}
	if len(part) > 0 {
		f.file.write(part, int(from))
	}
	if err != nil {
		return len(part), naming("write", f.name, err)
	}
	return len(b), nil
}

// Sync makes what was written durable, and the size.
func (f *File) Sync() error {
	if f.dead() {
		return naming("sync", f.name, ErrCut)
	}
	err := f.d.begin(Sync)
	switch {
	case err == nil:
		f.file.sync()
	case !errors.Is(err, ErrCut):
		f.file.spoil(f.d.draw())
	}
	return naming("sync", f.name, err)
}

// Size returns how long the file is.
func (f *File) Size() (int64, error) {
	if f.dead() {
		return 0, naming("stat", f.name, ErrCut)
	}
	return int64(len(f.file.data)), nil
}

// Close lets go of the file. It makes nothing durable.
func (f *File) Close() error { return nil }
