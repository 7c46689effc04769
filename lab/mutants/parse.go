package mutants

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/samya-db/samya/lab/kvoracle"
)

// Parse reads a bug:
//
//	says: one sentence
//	rule: where it is written
//	variant: majority
//	kind: safety
//	modes: majority auto
//	strategy: transfer
//	members: joins drains losses
//	rates: yes
//	sites: 7
//	seeds: 2000
//	explore: majority
//	--- file avantan/accept.go
//	--- old
//	…
//	--- new
//	…
//
// Tests find a bug of another kind, without modes, a strategy or anything else about
// clusters:
//
//	says: one sentence
//	rule: where it is written
//	variant: mux
//	kind: race
//	judge: test
//	tests: ./internal/mux ./client
//	run: TestCalls.* TestClose
//	timeout: 30s
//	hangs: yes
//	--- file internal/mux/mux.go
//	…
//
// The oracle of kvpart's order finds a third kind, in a store described in place of a
// cluster:
//
//	judge: order
//	subject: strategy=sched_workers partitions=4
//	seeds: 100
//	expect: deadlock
//
// The texts are whole lines. There may be several old and new in a file, and
// several files.
func Parse(name, text string) (Bug, error) {
	b := Bug{Name: name, Strategy: instances, Judge: JudgeSim}
	malformed := func(format string, args ...any) (Bug, error) {
		return Bug{}, fmt.Errorf("%w %q: %s", ErrFormat, name, fmt.Sprintf(format, args...))
	}
	edits, err := parseEdits(text, b.header)
	if err != nil {
		return malformed("%v", err)
	}
	b.Edits = edits
	switch {
	case b.Says == "" || b.Rule == "":
		return malformed("says and rule are needed")
	case !slices.Contains(Judges(), b.Judge):
		return malformed("judge is %q, must be one of %q", b.Judge, Judges())
	case !slices.Contains(variantsOf(b.Judge), b.Variant):
		return malformed("variant is %q, must be one of %q", b.Variant, variantsOf(b.Judge))
	case !slices.Contains(Kinds(), b.Kind):
		return malformed("kind is %q, must be one of %q", b.Kind, Kinds())
	case b.Judge != JudgeSim && (len(b.Modes) > 0 || len(b.Members) > 0 || b.Sites != 0 || b.Explore != "" || b.Strategy != instances || b.Rates):
		return malformed("modes, strategy, members, rates, sites and explore are for the simulator")
	case b.Judge != JudgeTest && (len(b.Tests) > 0 || len(b.Run) > 0 || b.Timeout != 0 || b.Hangs):
		return malformed("tests, run, timeout and hangs are for tests")
	case b.Judge != JudgeOrder && (b.Subject != "" || b.Deadlock):
		return malformed("subject and expect are for the oracle of kvpart's order")
	case b.Judge == JudgeTest && len(b.Tests) == 0:
		return malformed("tests are needed: the packages that find it")
	case b.Judge == JudgeTest && b.Seeds != 0:
		return malformed("tests have no seeds")
	case b.Judge == JudgeTest:
		return b, nil
	case b.Judge == JudgeOrder:
		if _, err := kvoracle.ParseSubject(b.Subject); b.Subject == "" || err != nil {
			return malformed("a subject is needed that can be read: %v", err)
		}
		return b, nil
	case len(b.Modes) == 0 || slices.ContainsFunc(b.Modes, func(m string) bool { return !slices.Contains(Modes(), m) }):
		return malformed("modes are %q, must be some of %q", b.Modes, Modes())
	case !slices.Contains(Strategies(), b.Strategy):
		return malformed("strategy is %q, must be one of %q", b.Strategy, Strategies())
	case slices.ContainsFunc(b.Members, func(m string) bool { return !slices.Contains(MemberChanges(), m) }):
		return malformed("members are %q, must be some of %q", b.Members, MemberChanges())
	}
	return b, nil
}

// parseEdits reads the edits of a bug, and hands header the lines ahead of them.
func parseEdits(text string, header func(line string) error) ([]Edit, error) {
	var edits []Edit
	file := ""
	var into *string
	for line := range strings.Lines(text) {
		switch rest, marks := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "--- "); {
		case marks && strings.HasPrefix(rest, "file "):
			file, into = strings.TrimPrefix(rest, "file "), nil
		case marks && rest == "old":
			edits = append(edits, Edit{File: file})
			into = &edits[len(edits)-1].Old
		case marks && rest == "new" && len(edits) > 0:
			into = &edits[len(edits)-1].New
		case marks:
			return nil, fmt.Errorf("unknown mark %q", rest)
		case into != nil:
			*into += line
		default:
			if err := header(line); err != nil {
				return nil, err
			}
		}
	}
	if len(edits) == 0 {
		return nil, errors.New("nothing is changed")
	}
	for _, e := range edits {
		if !filepath.IsLocal(e.File) || e.Old == "" || e.Old == e.New {
			return nil, fmt.Errorf("an edit of %q changes nothing that can be found", e.File)
		}
	}
	return edits, nil
}

// maxSites is the size of the largest cluster that can be simulated.
const maxSites = 9

// header reads a line ahead of the edits.
func (b *Bug) header(line string) error {
	key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
	value = strings.TrimSpace(value)
	switch {
	case strings.TrimSpace(line) == "":
	case ok && key == "says":
		b.Says = value
	case ok && key == "rule":
		b.Rule = value
	case ok && key == "variant":
		b.Variant = value
	case ok && key == "kind":
		b.Kind = value
	case ok && key == "modes":
		b.Modes = strings.Fields(value)
	case ok && key == "members":
		b.Members = strings.Fields(value)
	case ok && key == "rates":
		if value != "yes" {
			return fmt.Errorf("rates is %q, may be yes alone", value)
		}
		b.Rates = true
	case ok && key == "strategy":
		b.Strategy = value
	case ok && key == "explore":
		b.Explore = value
	case ok && key == "judge":
		b.Judge = value
	case ok && key == "subject":
		b.Subject = value
	case ok && key == "expect":
		if value != string(kvoracle.Deadlock) {
			return fmt.Errorf("expect is %q, may be %q alone", value, kvoracle.Deadlock)
		}
		b.Deadlock = true
	case ok && (key == "tests" || key == "run" || key == "timeout" || key == "hangs"):
		return b.testHeader(key, value)
	case ok && key == "seeds":
		n, err := strconv.ParseUint(value, 10, 32)
		if err != nil {
			return fmt.Errorf("seeds: %w", err)
		}
		b.Seeds = n
	case ok && key == "sites":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > maxSites {
			return fmt.Errorf("sites: %q is not within 1 and %d", value, maxSites)
		}
		b.Sites = n
	default:
		return fmt.Errorf("line %q", line)
	}
	return nil
}

// testHeader reads a line about the tests that find a bug.
func (b *Bug) testHeader(key, value string) error {
	switch key {
	case "tests":
		b.Tests = strings.Fields(value)
		for _, p := range b.Tests {
			if dir, ok := strings.CutPrefix(p, "./"); !ok || !filepath.IsLocal(dir) || strings.Contains(p, "...") {
				return fmt.Errorf("tests: %q is no package, such as ./client", p)
			}
		}
	case "run":
		b.Run = strings.Fields(value)
		for _, r := range b.Run {
			if _, err := regexp.Compile(r); err != nil || strings.Contains(r, "/") {
				return fmt.Errorf("run: %q is no regular expression for names of tests", r)
			}
		}
	case "timeout":
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 {
			return fmt.Errorf("timeout: %q is no time above zero", value)
		}
		b.Timeout = d
	case "hangs":
		if value != "yes" {
			return fmt.Errorf("hangs is %q, may be yes alone", value)
		}
		b.Hangs = true
	}
	return nil
}
