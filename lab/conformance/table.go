package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// Row is a promise and how it is tried.
type Row struct {
	// Name is the row's name, unique in the table.
	Name string `json:"name"`
	// Says is the promise, a sentence.
	Says string `json:"says"`
	// Steps are made in turn, each by all clients at once.
	Steps []Step `json:"steps"`
}

// Step is a step of a row: exactly one of Do, Begin, End, Cancel, Until, Fault and Pass is
// set.
type Step struct {
	// Do is a call, made to its end.
	Do string `json:"do,omitempty"`
	// Begin is a call that is left under way. End waits for its outcome, and Cancel has the
	// client give it up, both by its name As.
	Begin  string `json:"begin,omitempty"`
	End    string `json:"end,omitempty"`
	Cancel string `json:"cancel,omitempty"`
	// Until is a call that is repeated until its outcome is as wanted.
	Until string `json:"until,omitempty"`
	// Fault is done to a process, once for all clients: kill, stop (SIGSTOP), go (SIGCONT),
	// start, or to the proxy: mute (answers are lost), heal.
	Fault   string `json:"fault,omitempty"`
	Process string `json:"process,omitempty"`
	// Pass lets time pass, in milliseconds.
	Pass int `json:"pass_ms,omitempty"`

	// With are the arguments of a call. A text that begins with "$entity" has an
	// entity of the row and client there; "$name.member" is a member of the outcome of the
	// call named As.
	With map[string]any `json:"with,omitempty"`
	// Want is what the outcome must have; see Matches.
	Want map[string]any `json:"want,omitempty"`
	As   string         `json:"as,omitempty"`
}

// call returns the name of the step's call; empty if it begins none.
func (s Step) call() string { return s.Do + s.Begin + s.Until }

// Load reads a table and checks it.
func Load(path string) ([]Row, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the table: %w", err)
	}
	var rows []Row
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&rows); err != nil {
		return nil, fmt.Errorf("read the table %s: %w", path, err)
	}
	return rows, check(rows)
}

// check returns the faults of a table.
func check(rows []Row) error {
	var errs []error
	seen := map[string]bool{}
	for _, r := range rows {
		if r.Name == "" || r.Says == "" || len(r.Steps) == 0 {
			errs = append(errs, fmt.Errorf("row %q: wants a name, a sentence and steps", r.Name))
		}
		if seen[r.Name] {
			errs = append(errs, fmt.Errorf("row %q: is there twice", r.Name))
		}
		seen[r.Name] = true
		named := map[string]bool{}
		wants := false
		for i, s := range r.Steps {
			wants = wants || s.Want != nil
			if err := s.check(named); err != nil {
				errs = append(errs, fmt.Errorf("row %q, step %d: %w", r.Name, i+1, err))
			}
			if s.As != "" {
				named[s.As] = true
			}
		}
		if !wants {
			errs = append(errs, fmt.Errorf("row %q: cannot fail, as nothing is wanted", r.Name))
		}
	}
	return errors.Join(errs...)
}

// faults are the faults, and whether each is of a process.
var faults = map[string]bool{"kill": true, "stop": true, "go": true, "start": true, "mute": false, "heal": false}

func (s Step) check(named map[string]bool) error {
	n := 0
	for _, set := range []bool{s.Do != "", s.Begin != "", s.End != "", s.Cancel != "", s.Until != "", s.Fault != "", s.Pass != 0} {
		if set {
			n++
		}
	}
	ofProcess, known := faults[s.Fault]
	switch {
	case n != 1:
		return fmt.Errorf("has %d of do, begin, end, cancel, until, fault and pass_ms, must have one", n)
	case s.Begin != "" && (s.As == "" || s.Want != nil):
		return errors.New("begin: wants a name (as), and its end says what is wanted")
	case s.Until != "" && s.Want == nil:
		return errors.New("until: wants something to wait for")
	case s.End != "" && !named[s.End]:
		return fmt.Errorf("end: no call is named %q before", s.End)
	case s.Cancel != "" && !named[s.Cancel]:
		return fmt.Errorf("cancel: no call is named %q before", s.Cancel)
	case s.Fault != "" && (!known || ofProcess != (s.Process != "")):
		return fmt.Errorf("fault: no %q of process %q", s.Fault, s.Process)
	case s.Pass < 0 || s.Pass > 10_000:
		return fmt.Errorf("pass_ms: %d, at least 1 and at most 10000", s.Pass)
	}
	return nil
}
