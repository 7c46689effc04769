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

// Down ends all processes of the cluster, app managers before sites, and etcd last, and removes all
// files of the cluster, with the data, and the directory last. With keep it only ends
// the processes, and all files stay for a later [Apply]. A missing directory is no
// error. Foreign files in the directory stay, and Down returns an error.
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
	// The state goes last but for the lock: as long as it is there, Down can be
	// repeated.
	for _, name := range []string{dataDir, leftDir, logDir, certDir, stateFile + ".new", stateFile, lockFile} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("remove the cluster: %w", err)
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the cluster: all of it is removed, but not the directory: %w", err)
	}
	return nil
}

// stop ends all processes, app managers before sites, and etcd last.
func (s State) stop(ctx context.Context) error {
	for _, kind := range []string{KindAppManager, KindSite, KindEtcd} {
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
