package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/samya-db/samya/internal/dirs"
)

// Files that mark a data directory, beside the files of the data.
const (
	// rescuedName marks a directory as rescued.
	rescuedName = "rescued"
	// nodeName marks a directory as a node's.
	nodeName = "node"
)

// ErrNode: the log of the data is not in the directory alone.
var ErrNode = errors.New("the data directory belongs to a node, with its log in etcd")

// MarkRescued marks a data directory, durably: no site starts on it again. It must be done
// before anything that the data holds is given back.
func MarkRescued(dir string) error { return mark(dir, rescuedName, ErrRescued) }

// Rescued reports whether a data directory is marked as rescued.
func Rescued(dir string) (bool, error) { return there(filepath.Join(dir, rescuedName)) }

// MarkNode marks a data directory as a node's, durably, and makes the directory if needed.
// No site opens it again without Options.Over: its own log may lack acknowledged commits.
func MarkNode(dir string) error {
	if err := dirs.Make(dir, 0o700); err != nil {
		return fmt.Errorf("making the data directory: %w", err)
	}
	return mark(dir, nodeName, ErrNode)
}

// IsNode reports whether a data directory is marked as a node's.
func IsNode(dir string) (bool, error) { return there(filepath.Join(dir, nodeName)) }

// Exists reports whether a directory has the data of a site.
func Exists(dir string) (bool, error) { return there(filepath.Join(dir, fileName)) }

// mark makes a file that says why no site may start, durably.
func mark(dir, name string, why error) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(why.Error() + "\n")
		err = errors.Join(err, f.Sync(), f.Close(), dirs.Sync(dir))
	}
	if err != nil {
		return fmt.Errorf("marking the data directory with the file %s: %w", name, err)
	}
	return nil
}

// there reports whether there is a file.
func there(path string) (bool, error) {
	_, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("looking at the data directory: %w", err)
	}
	return true, nil
}
