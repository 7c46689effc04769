package simdisk

import (
	"errors"
	"io"
	"io/fs"
	"slices"
	"syscall"
)

// inode is a file without its names.
type inode struct {
	// data is the content that running programs read.
	data []byte
	// unsynced are the sectors written since the last sync, in the order of their first
	// writes. at maps a sector to its index in unsynced.
	unsynced []sector
	at       map[int]int
	// sizes are the sizes that the file has had since then, the first at the last sync.
	// It is empty if the size did not change.
	sizes []int
	// under, if not nil, is the content on the disk after a failed sync. Programs do not
	// read it; later syncs make only writes since then durable.
	under []byte
}

// sector is a written sector: its content at the last sync, and after each write since.
type sector struct {
	index  int
	states [][]byte
}

func newInode() *inode { return new(inode) }

// zeros is a sector of a file that was made longer.
var zeros [Sector]byte

// synced returns the content on the disk, without sectors written since.
func (f *inode) synced() []byte {
	if f.under != nil {
		return f.under
	}
	return f.data
}

// state copies the content of a sector; beyond the end of the file it is zeros.
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

// touch keeps the content of the sectors of a range before their first write.
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

// wrote keeps the content of the sectors of a range after a write.
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

// sync makes all writes since the last sync durable.
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

// decide returns the content on the disk, with the kept part of the unsynced writes.
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

// settle decides which unsynced writes are on the disk. Programs then read the content on
// the disk.
func (f *inode) settle(keep keeping) {
	if f.under == nil && len(f.unsynced) == 0 && len(f.sizes) == 0 {
		return
	}
	f.data, f.under = f.decide(keep), nil
	f.forget()
}

// spoil decides it in a failed sync. Programs go on to read their own writes.
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

// dead reports whether the power was lost after the file was opened.
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

// WriteAt implements io.WriterAt. The bytes are durable after the next Sync.
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

// Sync makes the written bytes and the size durable.
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

// Size returns the length of the file.
func (f *File) Size() (int64, error) {
	if f.dead() {
		return 0, naming("stat", f.name, ErrCut)
	}
	return int64(len(f.file.data)), nil
}

// Close closes the file. It makes nothing durable.
func (f *File) Close() error { return nil }
