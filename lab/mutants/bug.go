package mutants

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Bug is a known bug that can be seeded.
type Bug struct {
	// Name is the name of the bug's file without the ending.
	Name string
	// Says describes the bug in a sentence. Rule names the document that forbids it.
	Says, Rule string
	// Variant is the part with the bug, from Variants; Kind is from Kinds.
	Variant, Kind string
	// Modes are the modes of the clusters in which to look for the bug.
	Modes []string
	// Strategy is the strategy of all sites of the clusters; "instance" unless the file
	// names another.
	Strategy string
	// Members are the changes of the members of the clusters, from MemberChanges; none for
	// clusters of the same members all the time.
	Members []string
	// Rates says that the clusters have rate quotas.
	Rates bool
	// Sites is the size of the clusters; 0 if the seeds choose it.
	Sites int
	// Seeds is the least number of seeds to run, for a rare bug; 0 for the default.
	Seeds uint64
	// Explore names the variant to search exhaustively for the bug; empty for none.
	Explore string
	// Judge is the judge that has to find the bug, from Judges.
	Judge string
	// Tests are packages. Run holds regular expressions for the names of their tests;
	// empty for all tests.
	Tests, Run []string
	// Timeout bounds the tests; 0 for the default. Hangs says that something never ends,
	// so that synctest may report a deadlocked bubble.
	Timeout time.Duration
	Hangs   bool
	// Subject is the store in which the order oracle looks for the bug, see
	// kvoracle.ParseSubject. Deadlock says that the oracle's watchdog finds the bug.
	Subject  string
	Deadlock bool
	// Edits change the code.
	Edits []Edit
}

// Edit replaces a text that occurs exactly once in a file.
type Edit struct {
	// File is relative to the root of the module, with slashes.
	File     string
	Old, New string
}

// Judges are the finders of bugs: the simulator with the search, `go test`, or the oracle
// of kvpart's order.
func Judges() []string { return []string{JudgeSim, JudgeTest, JudgeOrder} }

// The judges of bugs.
const (
	JudgeSim   = "sim"
	JudgeTest  = "test"
	JudgeOrder = "order"
)

// Variants are the parts with bugs.
func Variants() []string { return append(SimVariants(), TestVariants()...) }

// SimVariants are the parts with bugs that the simulator finds.
func SimVariants() []string {
	return []string{"majority", "star", "transfer", "core", "redistribute", "log"}
}

// TestVariants are the parts with bugs that tests find.
func TestVariants() []string {
	return []string{
		"appmgr", "client", "mux", "frames", "access", "tls", "engine", "journal", "store", "shares", "partitions", "kvpart", "membership", "peer", "site", "predict",
		"doctor", "bookcopy", "handoff", "replica",
	}
}

// variantsOf returns the parts with bugs that a judge finds.
func variantsOf(judge string) []string {
	switch judge {
	case JudgeTest:
		// Tests may find any bug.
		return Variants()
	case JudgeOrder:
		return []string{"kvpart"}
	}
	return SimVariants()
}

// Kinds are the subjects of bugs: a rule of the protocol or a rule that the design marks
// [S]; the order of persistence; repeated requests; a race of callers; credentials; a
// bound on kept data.
func Kinds() []string {
	return []string{"rule", "safety", "persistence", "retry", "race", "credentials", "bound"}
}

// Modes are the modes of a cluster; see package sim.
func Modes() []string { return []string{"majority", "star", "auto", switching} }

// MemberChanges are the ways in which members change; see package sim.
func MemberChanges() []string { return []string{"joins", "drains", "losses"} }

// Strategies are the strategies of a cluster's sites; see package sim.
func Strategies() []string { return []string{instances, "transfer"} }

// instances is the strategy by which sites get tokens from instances alone.
const instances = "instance"

// switching is the mode in which sites are under several variants at once.
const switching = "switch"

var (
	// ErrFormat is matched by the error for a file that does not describe a bug.
	ErrFormat = errors.New("malformed bug")
	// ErrRotten is matched by the error for a bug that does not fit the code: its old
	// text does not occur exactly once. The code has moved on.
	ErrRotten = errors.New("bug does not apply")
	// ErrUnknownBug is matched by the error for a name that no bug has.
	ErrUnknownBug = errors.New("unknown bug")
)

//go:embed testdata/*.bug
var files embed.FS

// Catalogue returns all bugs, ordered by variant and name.
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
		bug, err := Parse(strings.TrimSuffix(path.Base(name), ".bug"), string(text))
		if err != nil {
			return nil, err
		}
		bugs = append(bugs, bug)
	}
	slices.SortStableFunc(bugs, func(a, b Bug) int {
		return cmp.Compare(slices.Index(Variants(), a.Variant), slices.Index(Variants(), b.Variant))
	})
	return bugs, nil
}

// Select returns the bugs of the given names, all for none.
func Select(bugs []Bug, names []string) ([]Bug, error) {
	if len(names) == 0 {
		return bugs, nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(bugs, func(b Bug) bool { return b.Name == name }) {
			return nil, fmt.Errorf("%w %q", ErrUnknownBug, name)
		}
	}
	return slices.DeleteFunc(slices.Clone(bugs), func(b Bug) bool { return !slices.Contains(names, b.Name) }), nil
}

// JudgedBy returns the bugs that a judge has to find, all for "".
func JudgedBy(bugs []Bug, judge string) []Bug {
	return slices.DeleteFunc(slices.Clone(bugs), func(b Bug) bool { return judge != "" && b.Judge != judge })
}

// Sample returns n of the bugs, evenly spread over the list; all for 0 or more
// than there are.
func Sample(bugs []Bug, n int) []Bug {
	if n == 0 || n >= len(bugs) {
		return bugs
	}
	picked := make([]Bug, n)
	for i := range picked {
		picked[i] = bugs[i*len(bugs)/n]
	}
	return picked
}

// Apply returns the changed files by their names, from the source tree at root. It
// fails with ErrRotten if an edit does not apply.
func (b *Bug) Apply(root string) (map[string]string, error) {
	changed := make(map[string]string)
	for _, e := range b.Edits {
		text, ok := changed[e.File]
		if !ok {
			raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(e.File)))
			if err != nil {
				return nil, fmt.Errorf("apply bug %q: %w", b.Name, err)
			}
			text = string(raw)
		}
		if n := strings.Count(text, e.Old); n != 1 {
			return nil, fmt.Errorf("%w: %q: its old text occurs %d times in %s, must occur once:\n%s", ErrRotten, b.Name, n, e.File, e.Old)
		}
		changed[e.File] = strings.Replace(text, e.Old, e.New, 1)
	}
	return changed, nil
}
