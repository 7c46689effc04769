package journal

import (
	"errors"
	"fmt"
)

// Begin begins the log of a base that was copied from elsewhere and holds all commits
// through after. The directory must hold no log. The base may get its place only after
// Begin has returned.
func Begin(dir Dir, owner uint64, after Number) error {
	names, err := dir.List()
	if err == nil && len(firstsOf(names)) > 0 {
		err = errors.New("there is one already")
	}
	var s *segment
	if err == nil {
		s, err = begin(dir, nil, owner, after+1)
	}
	if s != nil {
		err = errors.Join(err, s.file.Close())
	}
	if err != nil {
		return fmt.Errorf("beginning the log of a copy: %w", err)
	}
	return nil
}

// Remove deletes the files of a log, whatever they hold. The base of the log must be gone
// by then.
func Remove(dir Dir) error {
	names, err := dir.List()
	if err != nil {
		return fmt.Errorf("listing the directory: %w", err)
	}
	for _, name := range names {
		if _, is := firstOf(name); !is && name != nameNew && name != nameSpare {
			continue
		}
		if err := dir.Remove(name); err != nil {
			return fmt.Errorf("removing %s: %w", name, err)
		}
	}
	if err := dir.Sync(); err != nil {
		return fmt.Errorf("making the names of the log durable: %w", err)
	}
	return nil
}
