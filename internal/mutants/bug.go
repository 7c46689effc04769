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
	"strconv"
	"strings"
)

// Bug is one known bug that can be seeded.
type Bug struct {
	// Name is the name of its file without the ending.
	Name string
	// Says is what is wrong, in one sentence; Rule is where it is written that it
	// must not be so.
	Says, Rule string
	// Variant is the part that it is in, one of Variants; Kind is one of Kinds.
	Variant, Kind string
	// Modes are the modes of the cluster in which it is looked for.
	Modes []string
	// Strategy is that of all sites of those clusters; "instance" unless the file
	// says another.
	Strategy string
	// Sites is the size of those clusters; 0 if the seeds choose it.
	Sites int
	// Seeds is how many seeds it may take at least, if it is a rare one.
	Seeds uint64
	// Explore names the variant whose exhaustive search finds it; empty for none.
	Explore string
	// Edits change the code.
	Edits []Edit
}

// Edit replaces a text that occurs exactly once in a file.
type Edit struct {
	// File is relative to the root of the module, with slashes.
	File     string
	Old, New string
}

// Variants are the parts that bugs are in.
func Variants() []string {
	return []string{"majority", "star", "transfer", "core", "redistribute", "log"}
}

// Kinds are what bugs are about: a rule of the protocol, one that the design
// marks [S], the order of persistence, or repeated requests.
func Kinds() []string { return []string{"rule", "safety", "persistence", "retry"} }

// Modes are the modes of a cluster; see package sim.
func Modes() []string { return []string{"majority", "star", "auto", switching} }

// Strategies are those of the sites of a cluster; see package sim.
func Strategies() []string { return []string{instances, "transfer"} }

// instances is the strategy by which sites get tokens from instances alone.
const instances = "instance"

// switching is the mode in which sites are under several variants at once.
const switching = "switch"

var (
	// ErrFormat is matched by the error for a file that does not describe a bug.
	ErrFormat = errors.New("malformed bug")
	// ErrRotten is matched by the error for a bug whose old text is not in the
	// code exactly once: the code has moved on.
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

// Parse reads a bug:
//
//	says: one sentence
//	rule: where it is written
//	variant: majority
//	kind: safety
//	modes: majority auto
//	strategy: transfer
//	sites: 7
//	seeds: 2000
//	explore: majority
//	--- file avantan/accept.go
//	--- old
//	…
//	--- new
//	…
//
// The texts are whole lines. There may be several old and new in a file, and
// several files.
func Parse(name, text string) (Bug, error) {
	b := Bug{Name: name, Strategy: instances}
	malformed := func(format string, args ...any) (Bug, error) {
		return Bug{}, fmt.Errorf("%w %q: %s", ErrFormat, name, fmt.Sprintf(format, args...))
	}
	edits, err := ParseEdits(text, b.header)
	if err != nil {
		return malformed("%v", err)
	}
	b.Edits = edits
	switch {
	case b.Says == "" || b.Rule == "":
		return malformed("says and rule are needed")
	case !slices.Contains(Variants(), b.Variant):
		return malformed("variant is %q, must be one of %q", b.Variant, Variants())
	case !slices.Contains(Kinds(), b.Kind):
		return malformed("kind is %q, must be one of %q", b.Kind, Kinds())
	case len(b.Modes) == 0 || slices.ContainsFunc(b.Modes, func(m string) bool { return !slices.Contains(Modes(), m) }):
		return malformed("modes are %q, must be some of %q", b.Modes, Modes())
	case !slices.Contains(Strategies(), b.Strategy):
		return malformed("strategy is %q, must be one of %q", b.Strategy, Strategies())
	}
	return b, nil
}

// ParseEdits reads the edits of a bug, and hands header the lines ahead of them.
func ParseEdits(text string, header func(line string) error) ([]Edit, error) {
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
	case ok && key == "strategy":
		b.Strategy = value
	case ok && key == "explore":
		b.Explore = value
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

// Apply returns the changed files by their names, from the module at root.
func (b *Bug) Apply(root string) (map[string]string, error) {
	return ApplyEdits(root, b.Name, b.Edits)
}

// ApplyEdits returns the files that the edits of a bug change, by their names, from
// the module at root. It fails with ErrRotten if an edit does not apply.
func ApplyEdits(root, name string, edits []Edit) (map[string]string, error) {
	changed := make(map[string]string)
	for _, e := range edits {
		text, ok := changed[e.File]
		if !ok {
			raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(e.File)))
			if err != nil {
				return nil, fmt.Errorf("apply bug %q: %w", name, err)
			}
			text = string(raw)
		}
		if n := strings.Count(text, e.Old); n != 1 {
			return nil, fmt.Errorf("%w: %q: its old text occurs %d times in %s, must occur once:\n%s", ErrRotten, name, n, e.File, e.Old)
		}
		changed[e.File] = strings.Replace(text, e.Old, e.New, 1)
	}
	return changed, nil
}
