package cutcheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/samya-db/samya/kvpart/cut"
	"github.com/samya-db/samya/kvpart/cut/metis"
)

// ErrMetis says that gpmetis is missing or refused a graph.
var ErrMetis = errors.New("gpmetis")

// Metis runs gpmetis (of the Debian package metis).
type Metis struct{ path string }

// FindMetis looks gpmetis up by name or path. It fails with ErrMetis.
func FindMetis(name string) (*Metis, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("%w is not installed (Debian package metis): %w", ErrMetis, err)
	}
	return &Metis{path}, nil
}

// MetisOptions are the options of gpmetis.
type MetisOptions struct {
	Parts int
	// Bisect asks for recursive bisection instead of a direct cut into all parts.
	Bisect bool
	Seed   uint64
	// Imbalance is as in cut.Options. 0 takes gpmetis's own: .03 for a direct cut,
	// .001 for each bisection.
	Imbalance float64
}

// Beside returns gpmetis's direct cut of g and, if the direct cut is out of
// balance, its cut by recursive bisection. It fails with ErrMetis if gpmetis
// refuses.
func (m *Metis) Beside(ctx context.Context, g *cut.Graph, o MetisOptions) (direct, bisect *Figures, err error) {
	f, err := m.Open(g)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if direct, err = theirs(ctx, g, f, o); err != nil {
		return nil, nil, err
	}
	if direct.Balance <= 1+o.Imbalance+.005 {
		return direct, nil, nil
	}
	// Each bisection has its own bound: gpmetis's, not the bound of all parts.
	o.Bisect, o.Imbalance = true, 0
	bisect, err = theirs(ctx, g, f, o)
	return direct, bisect, err
}

// File is a graph on disk for gpmetis.
type File struct {
	metis *Metis
	g     *cut.Graph
	dir   string
}

// Open writes g to a new directory, which Close removes.
func (m *Metis) Open(g *cut.Graph) (*File, error) {
	dir, err := os.MkdirTemp("", "samya-gpmetis-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for a graph: %w", err)
	}
	f := &File{metis: m, g: g, dir: dir}
	if err := f.write(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *File) path() string { return filepath.Join(f.dir, "graph") }

func (f *File) write() error {
	to, err := os.Create(f.path())
	if err != nil {
		return fmt.Errorf("write a graph for gpmetis: %w", err)
	}
	return errors.Join(metis.Write(to, f.g, nil), to.Close())
}

// Close removes the directory.
func (f *File) Close() error {
	if err := os.RemoveAll(f.dir); err != nil {
		return fmt.Errorf("remove the graph of gpmetis: %w", err)
	}
	return nil
}

// partitioning is the line of gpmetis's report with its processor time, without
// reading and writing.
var partitioning = regexp.MustCompile(`Partitioning:\s+([0-9.]+) sec`)

// Partition returns gpmetis's parts, and the processor time in seconds from its
// report. It fails with ErrMetis if gpmetis refuses.
func (f *File) Partition(ctx context.Context, o MetisOptions) (parts []int32, seconds float64, err error) {
	args := []string{"-seed=" + strconv.FormatUint(o.Seed, 10)}
	if o.Bisect {
		args = append(args, "-ptype=rb")
	}
	if o.Imbalance > 0 {
		args = append(args, fmt.Sprintf("-ufactor=%.0f", max(1, o.Imbalance*1000)))
	}
	cmd := exec.CommandContext(ctx, f.metis.path, append(args, f.path(), strconv.Itoa(o.Parts))...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		said := strings.TrimSpace(out.String())
		if at := strings.LastIndexByte(said, '\n'); at >= 0 {
			said = said[at+1:]
		}
		return nil, 0, fmt.Errorf("%w: %w: %s", ErrMetis, err, said)
	}
	took := partitioning.FindSubmatch(out.Bytes())
	if took == nil {
		return nil, 0, fmt.Errorf("%w: its report tells no time: %s", ErrMetis, out.Bytes())
	}
	if seconds, err = strconv.ParseFloat(string(took[1]), 64); err != nil {
		return nil, 0, fmt.Errorf("%w: its time: %w", ErrMetis, err)
	}
	from, err := os.Open(f.path() + ".part." + strconv.Itoa(o.Parts))
	if err != nil {
		return nil, 0, fmt.Errorf("read the parts of gpmetis: %w", err)
	}
	parts, err = metis.ReadParts(from, len(f.g.Offsets)-1)
	return parts, seconds, errors.Join(err, from.Close())
}
