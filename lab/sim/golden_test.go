package sim_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/internal/versions/golden"
	"github.com/samya-db/samya/lab/sim"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/coretest"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/store"
)

var update = flag.Bool("update", false, "keep directories of this build's version as test data, unless there are some")

// kept is where the directories of each version are kept.
const kept = "../../site/store/testdata/versions"

// TestGoldenDirectories makes real directories of sites in the middle of their work,
// under faults: together they have all that a site can store. With -update they become
// the test data of this build's version, which package store reads for ever after. There
// is one for each: those of a version that was released are never written again.
func TestGoldenDirectories(t *testing.T) {
	if testing.Short() {
		t.Skip("commits to real files")
	}
	there := make(map[string]bool)
	var dirs []string
	for n := uint64(0); n < 60 && len(there) < len(parts); n++ {
		g := &gatherer{t: t, there: there, best: make(map[core.SiteID]*snapshot)}
		run(t, sim.Options{
			Seed: 7000 + n, Sites: 3, Trees: true, Protocol: []string{"star", sim.Switching, "majority"}[n%3], Disk: g.disk,
		})
		if best := g.close(); best != nil {
			dirs = append(dirs, best.dir)
			maps.Copy(there, best.has)
		}
	}
	if len(there) < len(parts) {
		t.Errorf("of all that a site can store, %v alone is there", slices.Sorted(maps.Keys(there)))
	}
	if !*update {
		return
	}
	to := filepath.Join(kept, fmt.Sprint(versions.Own().Newest))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		t.Fatalf("the test data of a version is written once: %v", err)
	}
	for i, dir := range dirs {
		if err := golden.Pack(filepath.Join(to, fmt.Sprintf("%d.tar.gz", i+1)), dir); err != nil {
			t.Fatal(err)
		}
	}
}

// parts are the parts of a site's data that the directories have between them.
var parts = map[string]func(*coretest.Memory) bool{
	"claim":    func(m *coretest.Memory) bool { return len(m.Claims) > 0 },
	"lease":    func(m *coretest.Memory) bool { return len(m.Leases) > 0 },
	"forecast": func(m *coretest.Memory) bool { return len(m.Forecasts) > 0 },
	"requests": func(m *coretest.Memory) bool { return len(m.Blocks.List) > 0 },
	"several": func(m *coretest.Memory) bool {
		return slices.ContainsFunc(m.Blocks.Values(), func(b stored.Block) bool {
			return slices.ContainsFunc(b.Records, func(r stored.Request) bool { return len(r.Parts) > 0 })
		})
	},
	"clock":    func(m *coretest.Memory) bool { return m.Clock != nil },
	"marks":    func(m *coretest.Memory) bool { return len(m.Remembered) > 0 },
	"created":  changed(input.CreateEntity),
	"deleted":  changed(input.DeleteEntity),
	"moved":    changed(input.MoveEntity),
	"mode":     changed(input.SetMode),
	"kept":     entities(func(e *stored.Entity) bool { return len(e.Protocol.Kept) > 0 }),
	"accepted": entities(func(e *stored.Entity) bool { return e.Protocol.Accepted != nil }),
	"pledged":  entities(func(e *stored.Entity) bool { return e.Protocol.Pledge != nil }),
	"exposed":  entities(func(e *stored.Entity) bool { return len(e.Protocol.Exposures) > 0 }),
	"limit":    entities(func(e *stored.Entity) bool { return len(e.Results) > 0 }),
	"debt":     entities(func(e *stored.Entity) bool { return e.Debt > 0 }),
	"held":     entities(func(e *stored.Entity) bool { return e.Held > 0 }),
	"surplus":  entities(func(e *stored.Entity) bool { return e.Surplus > 0 }),
	"parent":   entities(func(e *stored.Entity) bool { return e.Parent > 0 }),
	"slice":    entities(func(e *stored.Entity) bool { return len(e.Star.Slices) > 0 }),
	"floor":    entities(func(e *stored.Entity) bool { return len(e.Star.Floors) > 0 }),
	"credit":   entities(func(e *stored.Entity) bool { return len(e.Transfer.Credits) > 0 }),
	"debit":    entities(func(e *stored.Entity) bool { return e.Transfer.InFlight() > 0 }),
}

func changed(kind input.ChangeKind) func(*coretest.Memory) bool {
	return func(m *coretest.Memory) bool {
		return slices.ContainsFunc(m.Changes.Values(), func(c stored.Change) bool { return c.Change.Kind == kind })
	}
}

func entities(has func(*stored.Entity) bool) func(*coretest.Memory) bool {
	return func(m *coretest.Memory) bool {
		for _, e := range m.Entities {
			if has(&e) {
				return true
			}
		}
		return false
	}
}

// gatherer gathers, in a run, the directory that adds most to what is there.
type gatherer struct {
	t     *testing.T
	there map[string]bool
	best  map[core.SiteID]*snapshot
	open  []*store.Store
}

// snapshot is a copy of a directory as a loss of power would leave it, and its parts that
// were not there before.
type snapshot struct {
	dir string
	has map[string]bool
}

func (g *gatherer) disk(site core.SiteID) (sim.Disk, error) {
	dir := filepath.Join(memory(g.t), string(site))
	s, err := store.Open(store.Options{
		Dir: dir, Cluster: "golden", Site: site, Members: []core.SiteID{"a", "b", "c"}, Incarnation: message.Incarnation(site[0]),
	})
	if err != nil {
		return nil, err
	}
	g.open = append(g.open, s)
	return &goldenDisk{Store: s, g: g, site: site, dir: dir, seen: coretest.NewMemory(1)}, nil
}

// close closes the disks and returns the best snapshot; nil if none adds anything.
func (g *gatherer) close() *snapshot {
	for _, s := range g.open {
		if err := s.Close(); err != nil {
			g.t.Error(err)
		}
	}
	var best *snapshot
	for _, site := range slices.Sorted(maps.Keys(g.best)) {
		if s := g.best[site]; best == nil || len(s.has) > len(best.has) {
			best = s
		}
	}
	return best
}

// goldenDisk is a disk of which a copy is kept whenever it has more to show.
type goldenDisk struct {
	*store.Store
	g    *gatherer
	site core.SiteID
	dir  string
	seen *coretest.Memory
}

func (d *goldenDisk) Commit(r *stored.Records) error {
	if err := d.Store.Commit(r); err != nil {
		return err
	}
	if err := d.seen.Commit(r); err != nil {
		return err
	}
	has := make(map[string]bool)
	for name, there := range parts {
		if !d.g.there[name] && there(d.seen) {
			has[name] = true
		}
	}
	if best := d.g.best[d.site]; len(has) == 0 || best != nil && len(best.has) >= len(has) {
		return nil
	}
	// Nothing is carried over in the background: the files are as after a loss of power.
	to := filepath.Join(memory(d.g.t), "copy")
	err := os.CopyFS(to, os.DirFS(d.dir))
	if err != nil {
		return fmt.Errorf("copying %s: %w", d.dir, err)
	}
	for _, f := range must(os.ReadDir(to)) {
		if strings.HasPrefix(f.Name(), "journal-spare") {
			err = os.Remove(filepath.Join(to, f.Name()))
		}
	}
	d.g.best[d.site] = &snapshot{to, has}
	return err
}

// memory returns a directory that need not be durable, in memory where there is one.
func memory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "samya-golden-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
