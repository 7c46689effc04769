package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// ShadowDir is a view of a directory of the system that a log may be opened on without a
// change of the directory: all that is written, made, renamed or removed stays in memory.
type ShadowDir struct {
	path  string
	files map[string]*shadowFile
	// hidden are names of the directory that were taken away.
	hidden map[string]bool
}

var _ Dir = (*ShadowDir)(nil)

// NewShadowDir returns a view of a directory.
func NewShadowDir(path string) *ShadowDir {
	return &ShadowDir{path: path, files: make(map[string]*shadowFile), hidden: make(map[string]bool)}
}

// List implements Dir.
func (d *ShadowDir) List() ([]string, error) {
	names, err := OSDir(d.path).List()
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return d.hidden[n] || d.files[n] != nil })
	for n := range d.files {
		names = append(names, n)
	}
	return names, nil
}

// Create implements Dir.
func (d *ShadowDir) Create(name string) (File, error) {
	if _, err := d.Open(name); !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(fmt.Errorf("creating %s: %w", name, fs.ErrExist), err)
	}
	d.files[name] = &shadowFile{}
	return d.files[name], nil
}

// Open implements Dir.
func (d *ShadowDir) Open(name string) (File, error) {
	if f := d.files[name]; f != nil {
		return f, nil
	}
	if d.hidden[name] {
		return nil, fmt.Errorf("opening %s: %w", name, fs.ErrNotExist)
	}
	file, err := os.Open(filepath.Join(d.path, name))
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	d.files[name] = &shadowFile{under: file, length: info.Size(), size: info.Size()}
	return d.files[name], nil
}

// Rename implements Dir.
func (d *ShadowDir) Rename(from, to string) error {
	f, err := d.Open(from)
	if err != nil {
		return err
	}
	delete(d.files, from)
	d.hidden[from] = true
	d.files[to] = f.(*shadowFile)
	return nil
}

// Remove implements Dir.
func (d *ShadowDir) Remove(name string) error {
	if d.files[name] == nil {
		if _, err := os.Lstat(filepath.Join(d.path, name)); err != nil || d.hidden[name] {
			return errors.Join(fmt.Errorf("removing %s: %w", name, fs.ErrNotExist), err)
		}
	}
	delete(d.files, name)
	d.hidden[name] = true
	return nil
}

// Sync implements Dir. Nothing becomes durable.
func (d *ShadowDir) Sync() error { return nil }

// shadowFile is a file that keeps in memory what is written to it.
type shadowFile struct {
	under *os.File // nil for a new file
	// length is the length of the file under it, size that of the view.
	length, size int64
	written      []patch
}

// patch is a part of a file that was written, later ones over earlier ones.
type patch struct {
	at int64
	b  []byte
}

// ReadAt implements File.
func (f *shadowFile) ReadAt(b []byte, at int64) (n int, err error) {
	n = int(min(int64(len(b)), max(f.size-at, 0)))
	if n < len(b) {
		err = io.EOF
	}
	b = b[:n]
	clear(b)
	if f.under != nil && at < f.length {
		k := min(int64(n), f.length-at)
		if got, err := f.under.ReadAt(b[:k], at); err != nil && (!errors.Is(err, io.EOF) || int64(got) < k) {
			return 0, err
		}
	}
	for _, p := range f.written {
		from, to := max(at, p.at), min(at+int64(n), p.at+int64(len(p.b)))
		if from < to {
			copy(b[from-at:to-at], p.b[from-p.at:])
		}
	}
	return n, err
}

// WriteAt implements File.
func (f *shadowFile) WriteAt(b []byte, at int64) (int, error) {
	f.written = append(f.written, patch{at, slices.Clone(b)})
	f.size = max(f.size, at+int64(len(b)))
	return len(b), nil
}

// Size implements File.
func (f *shadowFile) Size() (int64, error) { return f.size, nil }

// Sync implements File. Nothing becomes durable.
func (f *shadowFile) Sync() error { return nil }

// Close implements File.
func (f *shadowFile) Close() error {
	if f.under == nil {
		return nil
	}
	file := f.under
	f.under = nil
	return file.Close()
}
