package store

import (
	"errors"

	"github.com/samya-db/samya/site/journal"
)

// ErrFormat is the error of data that cannot be read, which only tests tell from others.
var (
	ErrFormat  = errFormat
	ErrVersion = errVersion
)

// OpenWith is Open with something put around the base.
func OpenWith(o Options, wrap func(journal.Base) journal.Base) (*Store, error) { return open(o, wrap) }

// Abandon lets go of a store as the end of its process does: nothing is carried
// over.
func Abandon(s *Store) error {
	if c := &s.checkpoints; c.stop != nil {
		close(c.stop)
		<-c.ended
	}
	return errors.Join(s.journal.Close(), s.close())
}

// OpenBase opens a base alone.
func OpenBase(path string) (journal.Base, func() error, error) {
	b, err := openBase(path)
	if err != nil {
		return nil, nil, err
	}
	return b, b.Close, nil
}
