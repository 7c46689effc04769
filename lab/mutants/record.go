package mutants

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// record is a file of verdicts, a line for each: a long look goes on where it stopped.
type record struct {
	mu       sync.Mutex
	file     *os.File
	revision string
}

// verdict is a line of a record.
type verdict struct {
	// Revision names the source that was judged.
	Revision string `json:"revision"`
	// Of names a bug, or a part of the control.
	Of     string        `json:"of"`
	Caught bool          `json:"caught"`
	Found  []Found       `json:"found"`
	Alone  string        `json:"alone,omitempty"`
	Took   time.Duration `json:"took_ns"`
}

// openRecord opens the file of verdicts, and reads the outcomes on the same source. Without
// a file, it does nothing.
func (h *harness) openRecord(ctx context.Context) error {
	if h.Record == "" {
		return nil
	}
	revision, err := h.revision(ctx)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(h.Record, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("open the record of verdicts: %w", err)
	}
	h.record = &record{file: file, revision: revision}
	h.recorded = make(map[string]*Outcome)
	lines := bufio.NewReader(file)
	for end := int64(0); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			// A line without an end was being written when the look stopped.
			if err := file.Truncate(end); err != nil {
				return fmt.Errorf("mend the record of verdicts: %w", err)
			}
			return nil
		}
		end += int64(len(line))
		var v verdict
		if err := json.Unmarshal(line, &v); err != nil {
			_ = file.Close() // the error of the line tells more
			return fmt.Errorf("read the record of verdicts %s: %w", h.Record, err)
		}
		if v.Revision == revision {
			h.recorded[v.Of] = &Outcome{Found: v.Found, Alone: v.Alone, Took: v.Took}
		}
	}
}

// add adds the verdict of a bug, or of a part of the control. A look that failed is no
// verdict.
func (r *record) add(of string, o *Outcome) error {
	if r == nil || o.Err != nil {
		return nil
	}
	how, _ := o.CaughtBy()
	v := verdict{Revision: r.revision, Of: of, Caught: how != "", Found: o.Found, Alone: o.Alone, Took: o.Took}
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode a verdict: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("record a verdict: %w", err)
	}
	return nil
}

// Close closes the file.
func (r *record) Close() error {
	if r == nil {
		return nil
	}
	return r.file.Close()
}

// revision names the source tree, by the commit and a hash of what has changed since, and
// how hard the look is.
func (h *harness) revision(ctx context.Context) (string, error) {
	commit, err := h.command(ctx, os.Environ(), "git", "rev-parse", "HEAD")
	if err != nil {
		return "", fmt.Errorf("find the commit: %w", err)
	}
	revision := strings.TrimSpace(string(commit))
	changes, err := h.command(ctx, os.Environ(), "git", "diff", "HEAD")
	if err != nil {
		return "", fmt.Errorf("find what has changed since the commit: %w", err)
	}
	if len(changes) > 0 {
		revision += fmt.Sprintf("+%x", sha256.Sum256(changes))[:13]
	}
	return fmt.Sprintf("%s first=%d seeds=%d bound=%s max-states=%d search=%t sim=%t", revision, h.First, h.Seeds, h.Bound, h.MaxStates, !h.SkipSearch, !h.SkipSim), nil
}
