package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/term"

	"github.com/samya-db/samya/internal/dirs"
)

// toUsage describes the flag --to.
const toUsage = "file to write to, which gets its name once it is complete; - for standard output"

// output is where a command writes a long result: a file that gets its name once it is
// complete and on disk, or standard output.
type output struct {
	io.Writer
	path string
	file *os.File
}

var errNoOutput = errors.New("to: missing; a file, or - for standard output")

// output begins an output. One of discard and publish must follow.
func (p *program) output(path string) (*output, error) {
	switch path {
	case "":
		return nil, &usageError{errNoOutput}
	case "-":
		return &output{Writer: p.stdout}, nil
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".part-*")
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", path, err)
	}
	return &output{Writer: file, path: path, file: file}, nil
}

// discard removes what was written to a file.
func (o *output) discard() {
	if o.file != nil {
		// The error that has the output discarded is the one to tell.
		_, _ = o.file.Close(), os.Remove(o.file.Name())
	}
}

// publish gives a complete file its name.
func (o *output) publish() error {
	if o.file == nil {
		return nil
	}
	err := errors.Join(o.file.Sync(), o.file.Close())
	if err == nil {
		err = os.Rename(o.file.Name(), o.path)
	}
	if err == nil {
		err = dirs.Sync(filepath.Dir(o.path))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", o.path, errors.Join(err, os.Remove(o.file.Name())))
	}
	return nil
}

// isTerminal reports whether a stream of the process is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// counter shows in a terminal how far a command is.
type counter struct {
	to          io.Writer
	began, told time.Time
	n           int64
}

// counter begins a counter on standard error.
func (p *program) counter() *counter {
	c := &counter{began: time.Now()}
	if isTerminal(p.stderr) {
		c.to = p.stderr
	}
	return c
}

// tellEvery is the shortest time between two texts of a counter.
const tellEvery = 200 * time.Millisecond

// tell shows a text in the place of the last.
func (c *counter) tell(format string, args ...any) {
	if now := time.Now(); c.to != nil && now.Sub(c.told) >= tellEvery {
		c.told = now
		_, _ = fmt.Fprintf(c.to, "\r\x1b[K%s, %.0f s", fmt.Sprintf(format, args...), now.Sub(c.began).Seconds())
	}
}

// end leaves the line of the last text.
func (c *counter) end() {
	if c.to != nil && !c.told.IsZero() {
		_, _ = fmt.Fprintln(c.to)
	}
}
