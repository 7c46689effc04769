// Package history remembers the last changes of entities that were asked of a site, and who
// asked. It is for people who look at an entity: the audit log has the full requests, and
// the sites' books do not rest on it. The package refuses to grow: it remembers so many
// entities, and so many changes of each, in memory and in its file.
package history

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/samya-db/samya/internal/dirs"
)

const (
	// maxChanges bounds the changes of an entity.
	maxChanges = 16
	// maxEntities bounds the entities. An entity with a creation alone makes room, or else
	// the entity with the oldest change.
	maxEntities = 2000
	// maxFile is the size of the file, in bytes, from which on it is written anew. A file
	// with all that is remembered is smaller: a change takes at most a kilobyte.
	maxFile = 2 * maxChanges * maxEntities << 10
)

// Created is the kind of a creation.
const Created = "create"

// Change is a change of an entity that was decided.
type Change struct {
	AtMS       int64  `json:"at_ms"`
	Entity     string `json:"entity"`
	Caller     string `json:"caller,omitempty"`
	RequestID  string `json:"request_id,omitempty"`
	Kind       string `json:"kind"`
	OldLimit   *int64 `json:"old_limit,omitempty"`
	NewLimit   int64  `json:"new_limit"`
	Version    uint64 `json:"version"`
	Generation uint64 `json:"generation"`
	Parent     string `json:"parent,omitempty"`
}

// History has the changes that a site remembers. Several goroutines may use a History.
type History struct {
	path string

	mu      sync.Mutex
	changes map[string][]Change
	// file is nil until there is a change, and once the history is closed.
	file   *os.File
	closed bool
	size   int64
	// torn says that the file ends within a line.
	torn bool
}

// Open reads the changes of a file, and adds to the file; without a path nothing outlives the
// process. Lines that are no changes, such as the line of a crash, are left out. With an
// error the history is in memory alone.
func Open(path string) (*History, error) {
	h := &History{path: path, changes: make(map[string][]Change)}
	if path == "" {
		return h, nil
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.path = ""
		return h, fmt.Errorf("read the history of changes: %w", err)
	}
	h.read(text)
	if len(text) > maxFile {
		return h, h.rewrite()
	}
	if h.size = int64(len(text)); h.size > 0 {
		h.torn = text[h.size-1] != '\n'
		return h, h.begin(0)
	}
	return h, nil
}

// begin opens the file to add to it. An entity's first change makes the file, so that a start
// writes nothing.
func (h *History) begin(flags int) error {
	f, err := os.OpenFile(h.path, os.O_WRONLY|os.O_APPEND|flags, 0o600)
	if err != nil {
		return fmt.Errorf("write the history of changes: %w", err)
	}
	h.file = f
	return nil
}

// read takes up the lines of a file.
func (h *History) read(text []byte) {
	for line := range bytes.Lines(text) {
		var c Change
		if json.Unmarshal(line, &c) == nil && c.Entity != "" {
			h.add(c)
		}
	}
}

// add remembers a change, unless it is a repeat of a request. It reports whether it is new.
func (h *History) add(c Change) bool {
	of := h.changes[c.Entity]
	same := func(d Change) bool {
		return d.RequestID == c.RequestID && d.Kind == c.Kind && d.Generation == c.Generation
	}
	if c.RequestID != "" && slices.ContainsFunc(of, same) {
		return false
	}
	if of == nil && len(h.changes) >= maxEntities {
		h.forgetOldest()
	}
	of = append(of, c)
	h.changes[c.Entity] = of[max(0, len(of)-maxChanges):]
	return true
}

func (h *History) forgetOldest() {
	var oldest string
	value := func(name string) (tells int, at int64) {
		of := h.changes[name]
		if len(of) > 1 || of[0].Kind != Created {
			tells = 1
		}
		return tells, of[len(of)-1].AtMS
	}
	for name := range h.changes {
		if oldest == "" {
			oldest = name
		}
		tells, at := value(name)
		if most, last := value(oldest); tells < most || tells == most && at < last {
			oldest = name
		}
	}
	delete(h.changes, oldest)
}

// Add remembers a change, in the file too. After an error the change is remembered in memory
// alone.
func (h *History) Add(c Change) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.add(c) || h.path == "" || h.closed {
		return nil
	}
	if h.file == nil {
		if err := h.begin(os.O_CREATE); err != nil {
			return err
		}
		if err := dirs.Sync(filepath.Dir(h.path)); err != nil {
			return fmt.Errorf("make the history of changes durable: %w", err)
		}
	}
	line, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("remember a change: %w", err)
	}
	if h.torn {
		line, h.torn = slices.Concat([]byte("\n"), line), false
	}
	n, err := h.file.Write(append(line, '\n'))
	h.size += int64(n)
	if err == nil && c.Kind != Created { // many may be created at once, and each entity tells that it was
		err = h.file.Sync()
	}
	if err == nil && h.size > maxFile {
		err = h.rewrite()
	}
	if err != nil {
		return fmt.Errorf("remember a change: %w", err)
	}
	return nil
}

// rewrite writes the file anew with the changes in memory, and opens the file to add to it.
func (h *History) rewrite() error {
	var all []Change
	for _, of := range h.changes {
		all = append(all, of...)
	}
	slices.SortStableFunc(all, func(a, b Change) int { return cmp.Or(cmp.Compare(a.AtMS, b.AtMS), cmp.Compare(a.Entity, b.Entity)) })
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	for _, c := range all {
		if err := lines.Encode(c); err != nil {
			return fmt.Errorf("write the history of changes: %w", err)
		}
	}
	if err := dirs.Replace(h.path, text.Bytes()); err != nil {
		return fmt.Errorf("write the history of changes: %w", err)
	}
	old := h.file
	if err := h.begin(0); err != nil {
		return err
	}
	if old != nil {
		_ = old.Close() // the new file has its lines
	}
	h.size, h.torn = int64(text.Len()), false
	return nil
}

// Of returns the changes of an entity, the latest first.
func (h *History) Of(entity string) []Change {
	h.mu.Lock()
	defer h.mu.Unlock()
	of := slices.Clone(h.changes[entity])
	slices.Reverse(of)
	return of
}

// Close closes the file.
func (h *History) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.file
	if h.file, h.closed = nil, true; f == nil {
		return nil
	}
	return f.Close()
}
