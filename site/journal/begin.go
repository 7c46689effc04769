package journal

import "fmt"

// Begin makes an empty log that goes on after a commit, for a base that holds all commits
// through it. The directory may have no log.
func Begin(dir Dir, owner uint64, after Number) error {
	if err := begun(dir, owner, after); err != nil {
		return fmt.Errorf("beginning a log after commit %d: %w", after, err)
	}
	return nil
}

func begun(dir Dir, owner uint64, after Number) error {
	if err := Remove(dir); err != nil {
		return err
	}
	s, err := begin(dir, nil, owner, after+1)
	if s != nil {
		if closed := s.file.Close(); err == nil {
			err = closed
		}
	}
	return err
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
