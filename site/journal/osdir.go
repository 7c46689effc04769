package journal

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
)

// OSDir is a directory of the system.
type OSDir string

var _ Dir = OSDir("")

// List implements Dir.
func (d OSDir) List() ([]string, error) {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// Create implements Dir.
func (d OSDir) Create(name string) (File, error) {
	return d.open(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

// Open implements Dir.
func (d OSDir) Open(name string) (File, error) { return d.open(name, os.O_RDWR) }

func (d OSDir) open(name string, flags int) (File, error) {
	f, err := os.OpenFile(filepath.Join(string(d), name), flags, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Rename implements Dir.
func (d OSDir) Rename(from, to string) error {
	return os.Rename(filepath.Join(string(d), from), filepath.Join(string(d), to))
}

// Remove implements Dir.
func (d OSDir) Remove(name string) error { return os.Remove(filepath.Join(string(d), name)) }

// Sync implements Dir. It does nothing on Windows, which cannot sync a directory.
func (d OSDir) Sync() error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

type osFile struct{ *os.File }

// Size implements File.
func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Sync implements File.
func (f osFile) Sync() error { return syncData(f.File) }
