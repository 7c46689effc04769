package compare

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/samya-db/samya/devcluster/proc"
)

// logFile returns the name of a program's log.
func (e *Env) logFile(name string) string { return filepath.Join(e.Dir, name+".log") }

// errUnreachable says that a user cannot reach a directory.
var errUnreachable = errors.New("a directory above it is closed to others")

// worldDir is a directory that every user can reach.
const worldDir = "/var/tmp"

// dirFor makes a directory owned by a user. The directory is in Dir if the user can
// reach Dir, else in worldDir, which must be on the same file system.
func (e *Env) dirFor(u *proc.User, name string) (string, error) {
	dir := filepath.Join(e.Dir, name)
	if u != nil && !open(e.Dir) {
		same, err := sameDisk(e.Dir, worldDir)
		if err != nil {
			return "", err
		}
		if !same {
			return "", fmt.Errorf("%s: %w", e.Dir, errUnreachable)
		}
		if dir, err = os.MkdirTemp(worldDir, "samya-compare-*"); err != nil {
			return "", err
		}
		e.elsewhere = append(e.elsewhere, dir)
	} else if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	if u == nil {
		return dir, nil
	}
	if err := os.Chown(dir, int(u.UID), int(u.GID)); err != nil {
		return "", fmt.Errorf("give %s to another user: %w", dir, err)
	}
	return dir, nil
}

// open reports whether every user may pass through a directory and all directories
// above.
func open(dir string) bool {
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		above := filepath.Dir(dir)
		if above == dir {
			return true
		}
		dir = above
	}
}
