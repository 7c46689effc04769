package compare

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/buildtest"
)

// installed skips the test where a peer is missing, and fails it in CI.
func installed(t *testing.T, peer interface{ Installed() error }) {
	t.Helper()
	err := peer.Installed()
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatal(err)
	default:
		t.Skip(err)
	}
}

// briefly measures systems for moments, and fails unless all cells have figures
// and nothing is left behind.
func briefly(t *testing.T, systems ...System) *Report {
	t.Helper()
	if testing.Short() {
		t.Skip("real servers")
	}
	dir := diskDir(t)
	var r *Report
	err := errNone
	// On a busy disk a sync takes longer than moments.
	for span := 100 * time.Millisecond; errors.Is(err, errNone) && span < 10*time.Second; span *= 4 {
		r, err = Run(t.Context(), &Options{
			Systems: systems, Rounds: 1, Time: span, Warmup: 50 * time.Millisecond, Dir: dir,
			Progress: func(s string) { t.Log(s) },
			// Many entities are a matter of the same statements.
			Wanted: func(c Cell) bool {
				return c.Workload == Hot || c.Workload == Zipf && (c.Way == WayPipelined || c.Way == WayCoalesced || c.Way == WayBatch)
			},
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range r.Cells {
		if s := m.Samples[0]; s.Rate <= 0 || s.P50 <= 0 || s.P99 < s.P50 || s.ClientCPU <= 0 {
			t.Errorf("%s: %+v", m, s)
		}
	}
	nothingLeft(t, dir, nil)
	return r
}

func TestRealControls(t *testing.T) {
	briefly(t, Sync{}, Echo{Bin: os.Args[0]}, Echo{Bin: os.Args[0], HTTP: true})
}

func TestRealRedis(t *testing.T) {
	installed(t, Redis{})
	briefly(t, Redis{Always: true}, Redis{Always: true, NoIDs: true}, Redis{})
}

// TestRealReplicated: the systems that keep an operation at two machines or more.
func TestRealReplicated(t *testing.T) {
	for _, s := range []System{EtcdPuts{}, RedisReplica{}, SamyaNodes{}} {
		installed(t, s.(interface{ Installed() error }))
	}
	bin, err := buildtest.Samya(t.Context(), diskDir(t))
	if err != nil {
		t.Fatal(err)
	}
	briefly(t, EtcdPuts{}, RedisReplica{}, SamyaNodes{Bin: bin})
}

func TestRealEtcd(t *testing.T) {
	installed(t, EtcdSystem{})
	briefly(t, EtcdSystem{})
}

func TestRealPostgres(t *testing.T) {
	installed(t, PostgresSystem{})
	briefly(t, PostgresSystem{})
}

// TestRealPostgresURL: a server that was there stays, and nothing stays in it.
func TestRealPostgresURL(t *testing.T) {
	installed(t, PostgresSystem{})
	if testing.Short() {
		t.Skip("real servers")
	}
	env := &Env{Dir: diskDir(t), Programs: proc.NewPrograms()}
	t.Cleanup(func() {
		if err := env.Programs.Stop(context.Background(), grace); err != nil {
			t.Error(err)
		}
		for _, dir := range env.elsewhere {
			if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		}
	})
	there, err := PostgresSystem{}.Start(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := there.Close(); err != nil {
			t.Error(err)
		}
	}()
	server := there.(*runningPostgres)
	schemas := func() (n int) {
		if err := server.pool.QueryRow(t.Context(), "SELECT count(*) FROM pg_namespace").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := schemas()
	r := briefly(t, PostgresSystem{URL: server.url})
	if s := r.Cells[0].Samples[0]; s.ServerCPU != 0 {
		t.Errorf("%v µs of a server whose processes are not known", s.ServerCPU)
	}
	if after := schemas(); after != before {
		t.Errorf("%d schemas, %d before", after, before)
	}
}

func TestRealSamya(t *testing.T) {
	bin, err := buildtest.Samya(t.Context(), diskDir(t))
	if err != nil {
		t.Fatal(err)
	}
	briefly(t, SamyaSystem{Bin: bin})
}
