package compare

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// The ways of the controls.
const (
	WaySync = "64 records a sync"
	WayEcho = "64 callers"
)

const (
	// recordBytes is about what samya logs for an acquire.
	recordBytes = 128
	// syncRecords is how many records are appended before each sync.
	syncRecords = 64
	// growBytes is how far the file is extended by zeros at a time: to overwrite
	// syncs sooner than to grow. It is within the time of one sync in 512.
	growBytes = 4 << 20
)

// Sync is the disk alone: records are appended to a file that was extended
// before, and synced, one sync after the other.
type Sync struct{}

// About says what it is.
func (Sync) About() About {
	return About{
		Name: BareSync, Kind: Control,
		Promise: fmt.Sprintf("append %d records of %d bytes, fdatasync, again", syncRecords, recordBytes),
		Ways:    []Way{{Name: WaySync, Callers: 1, Batch: syncRecords}},
	}
}

// Start makes the file.
func (Sync) Start(_ context.Context, env *Env) (Running, error) {
	f, err := os.OpenFile(filepath.Join(env.Dir, "records"), os.O_CREATE|os.O_RDWR|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make a file: %w", err)
	}
	return &syncedFile{file: f, records: make([]byte, recordBytes*syncRecords)}, nil
}

// syncedFile is the file; it is running system and driver in one.
type syncedFile struct {
	file      *os.File
	records   []byte
	at, ready int64
}

func (f *syncedFile) Processes() []int                             { return nil }
func (f *syncedFile) Open(context.Context, string) (Driver, error) { return (*fileDriver)(f), nil }
func (f *syncedFile) Close() error                                 { return f.file.Close() }

// fileDriver appends to a [syncedFile].
type fileDriver syncedFile

// Acquire writes as many records as there are requests, and syncs them.
func (f *fileDriver) Acquire(_ context.Context, _ int, requests []Request, granted []bool) error {
	b := f.records[:recordBytes*len(requests)]
	for i, r := range requests {
		copy(b[i*recordBytes:], r.ID)
		granted[i] = true
	}
	if f.at+int64(len(b)) > f.ready {
		if err := f.extend(); err != nil {
			return err
		}
	}
	if _, err := f.file.WriteAt(b, f.at); err != nil {
		return fmt.Errorf("append: %w", err)
	}
	if err := fdatasync(f.file); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	f.at += int64(len(b))
	return nil
}

// extend writes zeros behind the end.
func (f *fileDriver) extend() error {
	if _, err := f.file.WriteAt(make([]byte, growBytes), f.ready); err != nil {
		return fmt.Errorf("extend: %w", err)
	}
	f.ready += growBytes
	return fdatasync(f.file)
}

// Close leaves the file to the running system.
func (*fileDriver) Close() error { return nil }
