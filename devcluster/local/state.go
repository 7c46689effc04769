package local

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/samya-db/samya/internal/dirs"
)

// stateVersion is the version of the file's form.
const stateVersion = 1

// ErrForeign says that a directory does not belong to a cluster of this package.
var ErrForeign = errors.New("not the directory of a local cluster")

// State is the content of run.json, the state of a cluster's processes. The plan of
// terraform/local reads the file as well.
type State struct {
	Version int `json:"version"`
	// Cluster is the name of the cluster. Members are the names of its sites, as of the
	// first start.
	Cluster string   `json:"cluster"`
	Members []string `json:"members"`
	// Joined are the sites that joined later. Joining are sites that were asked to join, and
	// may have a seat already.
	Joined  []string `json:"joined,omitempty"`
	Joining []string `json:"joining,omitempty"`
	// Leaving are the sites that are about to leave, and Lost of these the sites that have
	// lost their data. Gone are the sites that have left: no other site gets their names.
	Leaving []string `json:"leaving,omitempty"`
	Lost    []string `json:"lost,omitempty"`
	Gone    []string `json:"gone,omitempty"`
	// Nodes are the nodes of the sites of a region, if more than a single node.
	Nodes map[string]int `json:"nodes,omitempty"`
	// Config is what was wanted last, without runs; nil in states of older builds.
	Config *Config `json:"config,omitempty"`
	// TLS reports whether the processes were started with TLS.
	TLS bool `json:"tls"`
	// Boot is the boot of the machine in which the processes began; empty if the system
	// does not tell.
	Boot string `json:"boot"`
	// Processes are the started processes by name.
	Processes map[string]Run `json:"processes"`
}

// Run is a run of a process.
type Run struct {
	Process
	// PID is the process id. Start is when the process began, in the system's own words.
	PID   int    `json:"pid"`
	Start string `json:"start"`
	// Number counts the runs of the process's name.
	Number int64 `json:"run"`
	// Spec is a hash of program and command line.
	Spec string `json:"spec"`
}

// Read reads a cluster's state. For a missing directory, or a directory empty but for a
// lock, it returns the zero state. It returns [ErrForeign] for a directory with other
// files and no state.
func Read(dir string) (State, error) {
	b, err := os.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return State{}, fmt.Errorf("read %s: %w", dir, err)
		}
		if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() != lockFile }) {
			return State{}, fmt.Errorf("%s has files and no %s: %w", dir, stateFile, ErrForeign)
		}
		return State{}, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("read the state of a local cluster: %w", err)
	}
	var s State
	if err := json.Unmarshal(b, &s); err != nil {
		return State{}, fmt.Errorf("read %s: %w: %w", filepath.Join(dir, stateFile), err, ErrForeign)
	}
	if s.Version != stateVersion {
		return State{}, fmt.Errorf("%s is of version %d, this program knows %d: %w", filepath.Join(dir, stateFile), s.Version, stateVersion, ErrForeign)
	}
	return s, nil
}

// write replaces the state atomically.
func (s State) write(dir string) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("write the state of a local cluster: %w", err)
	}
	name := filepath.Join(dir, stateFile)
	if err := dirs.Replace(name, append(b, '\n')); err != nil {
		return fmt.Errorf("write the state of a local cluster: %w", err)
	}
	return nil
}

// sites are the names of all sites that the cluster may have.
func (s State) sites() []string {
	return without(slices.Sorted(slices.Values(slices.Concat(s.Members, s.Joined, s.Joining))), s.Gone)
}

// without returns the names that are not among others.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(others, n) })
}

// known reports whether the state was read from a file.
func (s State) known() bool { return s.Version != 0 }

// Runs reports whether the process of the name runs now.
func (s State) Runs(name string) bool {
	r, ok := s.Processes[name]
	return ok && r.alive(s.Boot)
}

// Names returns the names of the started processes, sites first.
func (s State) Names() []string {
	return slices.SortedFunc(maps.Keys(s.Processes), func(a, b string) int {
		return cmp.Or(-cmp.Compare(s.Processes[a].Kind, s.Processes[b].Kind), cmp.Compare(a, b))
	})
}
