package journal

import (
	"errors"
	"fmt"
)

// Errors of a journal. They wrap more detail.
var (
	// ErrDamaged: an acknowledged part of the log cannot be read. A DamageError wraps
	// it and says where.
	ErrDamaged = errors.New("the log is damaged")
	// ErrForeign: a segment belongs to other data.
	ErrForeign = errors.New("the log belongs to other data")
	// errClosed: the journal is closed.
	errClosed = errors.New("the log is closed")
)

// DamageError says where the log is damaged.
type DamageError struct {
	// File is the name of the segment.
	File string
	// Offset is the position of the damage in the file, in bytes.
	Offset int64
	// What is wrong there.
	What error
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%v: %s at byte %d: %v", ErrDamaged, e.File, e.Offset, e.What)
}

// Unwrap makes the error match ErrDamaged and What.
func (e *DamageError) Unwrap() []error { return []error{ErrDamaged, e.What} }
