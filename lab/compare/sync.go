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
	// recordBytes is about the size of samya's log record of an acquire.
	recordBytes = 128
	// syncRecords is the number of records before each sync.
	syncRecords = 64
	// growBytes is the number of zeros that extend the file at a time: overwriting
	// syncs faster than growing. An extension counts in the time of a sync in 512.
	growBytes = 4 << 20
)

// Sync is the disk alone. It appends records to a file extended before, and syncs
// them, sync after sync.
type Sync struct{}

// About describes the control.
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

// syncedFile is the file: both a running system and, as [fileDriver], its driver.
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

// Acquire writes a record for each request, and syncs.
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

// extend writes zeros after the end.
func (f *fileDriver) extend() error {
	if _, err := f.file.WriteAt(make([]byte, growBytes), f.ready); err != nil {
		return fmt.Errorf("extend: %w", err)
	}
	f.ready += growBytes
	return fdatasync(f.file)
}

// Close does nothing: the file belongs to the running system.
func (*fileDriver) Close() error { return nil }
