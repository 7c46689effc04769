package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/samya-db/samya/site/journal"
)

// Errors of a backup. They wrap more detail.
var (
	// ErrBackupUnderWay: the store makes another backup.
	ErrBackupUnderWay = errors.New("another backup is under way")
	// ErrBackupTooSlow: the backup took more time, or had more of the log wait, than it
	// may.
	ErrBackupTooSlow = errors.New("the backup is too slow")
	errClosing       = errors.New("the store is closing")
	errNoImages      = errors.New("this store cannot be read while it changes")
)

// images opens images of the base. Right after a checkpoint the base is the state at a
// single commit. While an image is open there is no checkpoint, so that the base stays as
// it is, and the log takes all commits. A checkpoint beside an image would cost more: the
// file could not use pages again, and would wait for the image before it grows.
//
// So an image must not last: it ends when the log is as long as Options.BackupLog, or
// after Options.BackupTime.
type images struct {
	mu     sync.Mutex
	closed bool
	// present is the image that is wanted or open; nil for none.
	present *image
}

// image is a state of the base.
type image struct {
	// want is the least commit that the image has to hold.
	want journal.Number
	// cancel ends the backup of the image.
	cancel context.CancelCauseFunc
	// opened is closed once tx is set, with the transaction's error in err.
	opened chan struct{}
	tx     *bolt.Tx
	err    error
	// done is set once the image is not needed any more, over is closed once the base
	// has no transaction of it.
	done bool
	over chan struct{}
}

// begin asks for an image that holds all present commits.
func (s *Store) begin(cancel context.CancelCauseFunc) (*image, error) {
	s.images.mu.Lock()
	defer s.images.mu.Unlock()
	switch {
	case s.file == nil:
		return nil, errNoImages
	case s.images.closed:
		return nil, errClosing
	case s.images.present != nil:
		return nil, ErrBackupUnderWay
	}
	im := &image{want: s.journal.Stats().Number, cancel: cancel, opened: make(chan struct{}), over: make(chan struct{})}
	s.images.present = im
	return im, nil
}

// await waits until an image is open.
func (s *Store) await(ctx context.Context, im *image) error {
	notify(s.checkpoints.due)
	select {
	case <-im.opened:
		return im.err
	case <-s.checkpoints.ended:
		if err := s.journal.Failed(); err != nil {
			return err
		}
		return errClosing
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// end lets go of an image, and of the memory that its pages took.
func (s *Store) end(im *image) error {
	s.images.mu.Lock()
	tx := im.tx
	// From here on it is not opened any more.
	im.done = true
	s.images.mu.Unlock()
	var err error
	if tx != nil {
		err = errors.Join(tx.Rollback(), s.loaded())
	}
	s.images.mu.Lock()
	s.images.present = nil
	close(im.over)
	s.images.mu.Unlock()
	// The checkpoints that would have been due meanwhile.
	s.checkpoints.committed(s)
	return err
}

// open opens the image that is wanted, right after a checkpoint. The journal does not
// step meanwhile.
func (s *Store) open() {
	s.images.mu.Lock()
	defer s.images.mu.Unlock()
	im := s.images.present
	if im == nil || im.done || im.tx != nil || s.journal.Stats().Through < im.want {
		return
	}
	im.tx, im.err = s.file.db.Begin(false)
	close(im.opened)
}

// held reports whether an image is open.
func (im *images) held() bool {
	im.mu.Lock()
	defer im.mu.Unlock()
	return im.present != nil && im.present.tx != nil
}

// bound ends an open image if the log is too long for it.
func (im *images) bound(backlog, most int64) {
	if backlog < most {
		return
	}
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.present != nil && im.present.tx != nil {
		im.present.cancel(fmt.Errorf("%w: the log has grown to %d bytes meanwhile, at most %d are allowed", ErrBackupTooSlow, backlog, most))
	}
}

// close ends an image, and waits until nobody reads it.
func (im *images) close() {
	im.mu.Lock()
	im.closed = true
	present := im.present
	im.mu.Unlock()
	if present != nil {
		present.cancel(errClosing)
		<-present.over
	}
}

// frozen is an open image as a base that is only read.
type frozen struct{ tx *bolt.Tx }

// Each is as in journal.Base.
func (f frozen) Each(bucket journal.Bucket, do func(key, value []byte) error) error {
	if found := f.tx.Bucket(bucketNames[bucket]); found != nil {
		return found.ForEach(do)
	}
	return nil
}

// pace has a backup rest after each block, so that requests find processor and disk free:
// nineteen times as long as the block took, and less the longer the log is.
type pace struct {
	// left is the part of the log that is left to the backup, from 1 down to 0.
	left  func() float64
	began time.Time
	timer *time.Timer
}

// backupRest is how much longer than a block the rest after it is, with an empty log.
const backupRest = 19

func (p *pace) rest(ctx context.Context) error {
	// By the square a backup gets through more before the log is too long.
	left := p.left()
	pause := min(time.Duration(backupRest*left*left*float64(time.Since(p.began))), restMost)
	if p.timer == nil {
		p.timer = time.NewTimer(pause)
	} else {
		p.timer.Reset(pause)
	}
	select {
	case <-p.timer.C:
		p.began = time.Now()
		return nil
	case <-ctx.Done():
		p.timer.Stop()
		return context.Cause(ctx)
	}
}
