// Package kvmutants shows that the order oracle and the tests of kvpart find bugs:
// it seeds known ones into the code, one at a time, and has them looked for. It
// refuses to touch the code it changes: a bug is a piece of text and what stands in
// its place, as in package mutants, and is applied by `go test -overlay`.
//
// A bug counts as caught only if the oracle names an invariant that does not hold,
// or the test named in the bug's file fails. A panic, a failed build or a time-out
// does not count, and a deadlock that the watchdog names only where the file says
// so. The unchanged code runs as the control, and must pass.
package kvmutants

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/samya-db/samya/lab/kvoracle"
	"github.com/samya-db/samya/lab/mutants"
)

// Bug is one known bug that can be seeded.
type Bug struct {
	// Name is the name of its file without the ending.
	Name string
	// Says is what is wrong, in one sentence; Rule is where it is written that it
	// must not be so.
	Says, Rule string
	// Subject is the store in which the oracle looks for it, see
	// kvoracle.ParseSubject; empty for a bug that a test finds.
	Subject string
	// Package and Test are what finds it if there is no subject.
	Package, Test string
	// Args are handed to the test.
	Args []string
	// Deadlock tells that the watchdog finds it.
	Deadlock bool
	Edits    []mutants.Edit
}

// ErrFormat is matched by the error for a file that does not describe a bug.
var ErrFormat = errors.New("malformed bug")

//go:embed testdata/*.bug
var files embed.FS

// Catalogue returns all bugs, ordered by name.
func Catalogue() ([]Bug, error) {
	names, err := fs.Glob(files, "testdata/*.bug")
	if err != nil {
		return nil, fmt.Errorf("list the bugs: %w", err)
	}
	var bugs []Bug
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read a bug: %w", err)
		}
		b, err := Parse(strings.TrimSuffix(path.Base(name), ".bug"), string(text))
		if err != nil {
			return nil, err
		}
		bugs = append(bugs, b)
	}
	return bugs, nil
}

// Parse reads a bug: the fields of Bug in lower case, one a line, and then edits as
// in package mutants. It has either a subject or a test, which is a package, a
// regular expression, and what else the test is handed.
func Parse(name, text string) (Bug, error) {
	b := Bug{Name: name}
	edits, err := mutants.ParseEdits(text, b.header)
	b.Edits = edits
	switch {
	case err != nil:
	case b.Says == "" || b.Rule == "":
		err = errors.New("says and rule are needed")
	case (b.Subject == "") == (b.Test == ""):
		err = errors.New("either subject or test is needed")
	case b.Subject != "":
		_, err = kvoracle.ParseSubject(b.Subject)
	}
	if err != nil {
		return Bug{}, fmt.Errorf("%w %q: %w", ErrFormat, name, err)
	}
	return b, nil
}

// header reads a line ahead of the edits.
func (b *Bug) header(line string) error {
	if strings.TrimSpace(line) == "" {
		return nil
	}
	key, value, _ := strings.Cut(line, ":")
	value = strings.TrimSpace(value)
	switch key {
	case "says":
		b.Says = value
	case "rule":
		b.Rule = value
	case "subject":
		b.Subject = value
	case "test":
		words := strings.Fields(value)
		if len(words) < 2 {
			return fmt.Errorf("test is %q, must be a package and a regular expression", value)
		}
		b.Package, b.Test, b.Args = words[0], words[1], words[2:]
	case "expect":
		if value != string(kvoracle.Deadlock) {
			return fmt.Errorf("expect is %q, may be %q alone", value, kvoracle.Deadlock)
		}
		b.Deadlock = true
	default:
		return fmt.Errorf("line %q", line)
	}
	return nil
}
