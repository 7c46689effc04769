package replica

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/samya-db/samya/internal/dirs"
	"github.com/samya-db/samya/site/journal"
)

// Span names the run of a node's commits from First on, up to the next span. If the store
// has another run for the node's last commit, the store was put back to an older copy, and
// another node went on there.
type Span struct {
	First journal.Number `json:"first"`
	// Run is the Leader.Run of the node that made the commits.
	Run uint64 `json:"run,string"`
}

// Spans keeps the spans of a node's commits.
type Spans interface {
	// Load returns the spans in the order of First; none if it keeps none.
	Load() ([]Span, error)
	// Save keeps the spans in place of all others, durably, all or none.
	Save(spans []Span) error
}

// mostSpans bounds the spans kept. A node needs more than the last one only if the loss of
// its power takes the commits of many runs.
const mostSpans = 64

// span notes the run of a commit, before the commit is in the local log. Spans from the
// commit on belong to commits lost with the power, and are dropped.
func (l *Log) span(n journal.Number, run uint64) error {
	kept := len(l.spans)
	for kept > 0 && l.spans[kept-1].First >= n {
		kept--
	}
	same := kept > 0 && l.spans[kept-1].Run == run
	if l.o.Spans == nil || same && kept == len(l.spans) {
		return nil
	}
	spans := slices.Clone(l.spans[:kept])
	if !same {
		spans = append(spans, Span{First: n, Run: run})
	}
	spans = spans[max(0, len(spans)-mostSpans):]
	if err := l.o.Spans.Save(spans); err != nil {
		return fmt.Errorf("noting the run of commit %d: %w", n, err)
	}
	l.spans = spans
	return nil
}

// runOf returns the run of a commit; 0 if it is not known.
func runOf(spans []Span, n journal.Number) uint64 {
	for _, s := range slices.Backward(spans) {
		if s.First <= n {
			return s.Run
		}
	}
	return 0
}

// compare compares the node's last commit with the store's under that number, by their
// runs. e is the first entry from the last commit on: the commit itself, or the next one if
// it was trimmed.
func (l *Log) compare(e Entry) error {
	last := l.Last()
	n, ok := l.o.Keys.number(e.Key)
	if !ok || last == 0 || last == l.o.Origin.After || n > last+1 {
		return nil // nothing can be compared, or take refuses the entry
	}
	r, err := decode(n, e.Value)
	if err != nil {
		return err
	}
	run := r.run
	if n > last {
		run = r.before
	}
	switch {
	case l.lastRun == 0 && run != 0:
		// The node has the commit from a copy of another node's base.
		l.lastRun = run
		return l.span(last, run)
	case run != l.lastRun && run != 0:
		return fmt.Errorf("%w: commit %d there is another, as if it was put back to an older copy", ErrLost, last)
	}
	return nil
}

// SpansFile keeps spans in a file, by its path.
type SpansFile string

// spanned is the content of the file.
type spanned struct {
	Spans []Span `json:"spans"`
}

// Load implements Spans.
func (f SpansFile) Load() ([]Span, error) {
	raw, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var s spanned
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("reading %s: %w", string(f), err)
	}
	return s.Spans, nil
}

// Save implements Spans.
func (f SpansFile) Save(spans []Span) error {
	raw, err := json.Marshal(&spanned{spans})
	if err != nil {
		return err
	}
	return dirs.Replace(string(f), append(raw, '\n'))
}

// Clear forgets all spans: the node gets other data.
func (f SpansFile) Clear() error { return f.Save(nil) }
