package journal

import "io"

// Dir is the directory of the segments. Calls on it are not concurrent.
type Dir interface {
	// List returns the names in the directory, in any order.
	List() ([]string, error)
	// Create makes a file and opens it; no file of that name may exist.
	Create(name string) (File, error)
	// Open opens a file that exists, to read and write.
	Open(name string) (File, error)
	// Rename gives a file another name, taking the name from the file that has it.
	Rename(from, to string) error
	// Remove takes a file's name away.
	Remove(name string) error
	// Sync makes the present names durable.
	Sync() error
}

// File is a file of a Dir. Reading, writing and syncing may be concurrent.
type File interface {
	io.ReaderAt
	// WriteAt writes all of b or fails; data beyond the end makes the file longer.
	// Nothing written is durable before Sync, and any part of it may be.
	io.WriterAt
	// Size is the file's length in bytes.
	Size() (int64, error)
	// Sync makes all earlier writes and the file's size durable. After an error it is
	// unknown, for ever, which writes are durable.
	Sync() error
	io.Closer
}
