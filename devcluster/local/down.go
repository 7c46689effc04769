package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
)

// Down ends all processes of the cluster, app managers before sites, and removes
// what was written, the directory itself last. Data is gone then. With keep the
// processes are ended and everything stays, for a later [Apply]. A directory that
// is not there is no error; one with files of others in it is told, and they stay.
func Down(ctx context.Context, dir string, keep bool) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := Read(dir); err != nil {
		return err
	}
	release, err := lock(dir)
	if err != nil {
		return err
	}
	defer release()
	state, err := Read(dir)
	if err != nil {
		return err
	}
	if err := state.stop(ctx); err != nil {
		return err
	}
	if keep {
		return nil
	}
	// The state goes last but for the lock: while it is there, this can be done again.
	for _, name := range []string{dataDir, logDir, certDir, stateFile + ".new", stateFile, lockFile} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("remove the cluster: %w", err)
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the cluster: all of it is removed, but not the directory: %w", err)
	}
	return nil
}

// stop ends all processes, app managers before sites.
func (s State) stop(ctx context.Context) error {
	for _, kind := range []string{KindAppManager, KindSite} {
		var group errgroup.Group
		for _, r := range s.Processes {
			if r.Kind == kind {
				group.Go(func() error { return r.stop(ctx, s.Boot) })
			}
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}
