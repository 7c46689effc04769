package journal

import "io"

// Dir is the directory that segments stand in. Calls on it are not concurrent.
type Dir interface {
	// List returns the names in it, in any order.
	List() ([]string, error)
	// Create makes a file and opens it; one of that name must not exist.
	Create(name string) (File, error)
	// Open opens a file that exists, to read and write.
	Open(name string) (File, error)
	// Rename gives a file another name, taking it from the file that has it.
	Rename(from, to string) error
	// Remove takes a file's name away.
	Remove(name string) error
	// Sync makes all names durable, as they are.
	Sync() error
}

// File is a file of a Dir. Reading, writing and syncing may be concurrent.
type File interface {
	io.ReaderAt
	// WriteAt writes all of b or fails; what is beyond the end makes the file
	// longer. Nothing written is durable before Sync, and any part of it may be.
	io.WriterAt
	// Size is the file's length in bytes.
	Size() (int64, error)
	// Sync makes durable what was written before, and the file's size. After an
	// error it is unknown what is, for ever.
	Sync() error
	io.Closer
}
