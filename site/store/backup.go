package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/samya-db/samya/site/backup"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/journal"
)

// Backup writes the state at a single commit as a file of package backup; build is the
// version for its header. The state holds all commits that were appended before.
//
// Commits go on meanwhile. A writer that is slow holds up nothing: the backup ends with
// ErrBackupTooSlow at the bounds of Options, and so does Backup once the writer has
// returned. There is a single backup at a time, or ErrBackupUnderWay.
func (s *Store) Backup(ctx context.Context, to io.Writer, build string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	im, err := s.begin(cancel)
	if err != nil {
		return fmt.Errorf("making a backup: %w", err)
	}
	blocks := make(chan []byte)
	var failed error
	go func() {
		failed = s.image(ctx, im, build, blocks)
		failed = errors.Join(failed, s.end(im))
		close(blocks)
	}()
	for b := range blocks {
		if err != nil {
			continue
		}
		if _, err = to.Write(b); err != nil {
			cancel(err)
		}
	}
	// After a failed write the image may still come to its end, as after the last write.
	if failed = cmp.Or(failed, err); failed != nil {
		return fmt.Errorf("making a backup: %w", failed)
	}
	return nil
}

// image hands over the blocks of a backup.
func (s *Store) image(ctx context.Context, im *image, build string, blocks chan<- []byte) error {
	began := time.Now()
	if err := s.await(ctx, im); err != nil {
		return err
	}
	most := s.options.BackupTime
	ctx, stop := context.WithTimeoutCause(ctx, most, fmt.Errorf("%w: it takes more than %v", ErrBackupTooSlow, most))
	defer stop()
	h, err := headerOf(frozen{im.tx})
	if err != nil {
		return err
	}
	h.Time, h.Build = began.UTC(), build
	left := func() float64 { return max(0, 1-float64(s.journal.Backlog())/float64(s.options.BackupLog)) }
	w, err := backup.NewWriter(&handover{ctx: ctx, to: blocks, pace: pace{left: left, began: time.Now()}}, h)
	if err != nil {
		return err
	}
	for _, bucket := range slices.Sorted(maps.Keys(bucketNames)) {
		err := frozen{im.tx}.Each(bucket, func(key, value []byte) error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return w.Put(backup.Record{Bucket: uint8(bucket), Key: key, Value: value})
		})
		if err != nil {
			return err
		}
	}
	return w.Close()
}

// handover hands each block to another goroutine, and rests.
type handover struct {
	ctx  context.Context //nolint:containedctx // a Writer's Write has none
	to   chan<- []byte
	pace pace
}

// Write implements io.Writer.
func (h *handover) Write(b []byte) (int, error) {
	select {
	case h.to <- slices.Clone(b):
		return len(b), h.pace.rest(h.ctx)
	case <-h.ctx.Done():
		return 0, context.Cause(h.ctx)
	}
}

// headerOf returns the header of a backup of data, without its time and build.
func headerOf(of eacher) (*backup.Header, error) {
	identity, set, err := named(of)
	if err != nil {
		return nil, err
	}
	var r stored.Restored
	if err := of.Each(bucketGuard, func(k, v []byte) error { return guarded(k, v, &r) }); err != nil {
		return nil, fmt.Errorf("%w: %w", errFormat, err)
	}
	members, err := membersOf(of, set.GetSites())
	return &backup.Header{
		Cluster: identity.GetCluster(), Site: identity.GetSite(), Members: members,
		Incarnation: uint64(r.Incarnation), Commit: uint64(r.Commits),
	}, err
}

// membersOf returns the members that the catalogue names; founders before it names any.
func membersOf(of eacher, founders []string) (members []string, err error) {
	err = of.Each(bucketCatalogue, func(k, v []byte) error {
		if !bytes.Equal(k, keyCatalogue) {
			return nil
		}
		c, err := decodeCatalogue(v)
		if err != nil {
			return fmt.Errorf("%w: %w", errFormat, err)
		}
		for _, s := range c.Roster.Seats {
			if s.State.Serves() {
				members = append(members, string(s.Site))
			}
		}
		return nil
	})
	if len(members) == 0 {
		members = founders
	}
	return members, err
}

// eacher is the part of a journal.Base that reads a bucket.
type eacher interface {
	Each(b journal.Bucket, f func(key, value []byte) error) error
}
