package store_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/store"
)

// perCommit is the number of requests in a commit of the log, as 64 callers make them.
const perCommit = 64

// logRequests has a site end with the given number of requests in its log, each with a
// key of its own, of 10,000 entities.
func logRequests(tb testing.TB, dir string, requests int) {
	tb.Helper()
	const entities = 10_000
	o := options(dir)
	o.CheckpointBytes = 1 << 40
	s, err := store.Open(o)
	if err != nil {
		tb.Fatal(err)
	}
	var r stored.Records
	for i := range entities {
		r.Entities = append(r.Entities, stored.Entity{Name: fmt.Sprintf("acme/%05d/vm", i), Generation: uint64(i + 1), Limit: 1 << 40})
		r.Books = append(r.Books, stored.Books{Name: r.Entities[i].Name, Generation: uint64(i + 1), Left: 1 << 40})
	}
	books, names := r.Books, r.Entities
	r.Catalogue = &stored.Catalogue{Generation: entities}
	for n := 0; n < requests; {
		if n > 0 {
			r = stored.Records{Block: stored.Block{Records: r.Block.Records[:0]}, Books: r.Books[:0]}
		} else {
			r.Books = append([]stored.Books(nil), books...)
		}
		r.Block.Sequence, r.Block.Wall = uint64(n/perCommit+1), int64(n)
		for range min(perCommit, requests-n) {
			e := rand.N(entities)
			books[e].Left--
			rec := stored.Request{
				Body: rand.Uint64(), Kind: stored.AcquireRequest, State: stored.Ran, Attempt: attempt.Of(1, 0),
				Generation: names[e].Generation, Tokens: 1, Left: books[e].Left,
			}
			n++
			binary.BigEndian.PutUint64(rec.Key[:], rand.Uint64())
			binary.BigEndian.PutUint64(rec.Key[8:], uint64(n))
			r.Block.Records = append(r.Block.Records, rec)
			r.Books = append(r.Books, books[e])
		}
		r.Commits = message.Commits(r.Block.Sequence)
		if err := s.Append(&r); err != nil {
			tb.Fatal(err)
		}
	}
	if err := errors.Join(s.Sync(), store.Abandon(s)); err != nil {
		tb.Fatal(err)
	}
}

// recovered is the cost and the findings of a restart after the end of a process.
type recovered struct {
	Open, Load, Core   stage
	Requests, Acquired int
	Commits            message.Commits
}

// stage is the time of a part, its processor time, and the most memory that the process
// ever had by then, in bytes.
type stage struct {
	Took, Processors time.Duration
	Peak             int64
}

// staged measures a part.
func staged(do func() error) (stage, error) {
	var before, after syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	began := time.Now()
	err = errors.Join(err, do())
	took := time.Since(began)
	err = errors.Join(err, syscall.Getrusage(syscall.RUSAGE_SELF, &after))
	return stage{
		Took: took, Peak: after.Maxrss << 10,
		Processors: time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()),
	}, err
}

// recoverFrom starts on the files of logRequests.
func recoverFrom(dir string) (r recovered, err error) {
	var s *store.Store
	r.Open, err = staged(func() error { s, err = store.Open(options(dir)); return err })
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var state stored.Restored
	r.Load, err = staged(func() error { state, err = s.Load(); return err })
	if err != nil {
		return r, err
	}
	r.Commits = state.Commits
	if err := state.EachBlock(func(b *stored.Block) error { r.Requests += len(b.Records); return nil }); err != nil {
		return r, err
	}
	for i := range state.Books {
		r.Acquired += int(1<<40 - state.Books[i].Left)
	}
	r.Core, err = staged(func() error {
		_, err := core.New(core.Config{
			Self: "us", Members: []core.SiteID{"as", "eu", "us"}, Rand: rand.New(rand.NewPCG(1, 2)), Retention: 300_000, Run: 1,
		}, state)
		return err
	})
	return r, err
}

// TestRecovery: all logged commits are there, though none was carried over.
// BenchmarkRecovery does it at length.
func TestRecovery(t *testing.T) {
	const requests = 50_000
	dir := t.TempDir()
	logRequests(t, dir, requests)
	r, err := recoverFrom(dir)
	if err != nil {
		t.Fatal(err)
	}
	r.check(t, requests)
}

func (r *recovered) check(tb testing.TB, requests int) {
	tb.Helper()
	if commits := (requests + perCommit - 1) / perCommit; r.Requests != requests || r.Acquired != requests || int(r.Commits) != commits {
		tb.Errorf("%d requests and %d tokens in %d commits are found, want %d in %d", r.Requests, r.Acquired, r.Commits, requests, commits)
	}
}

// recoverDir has TestRecoverChild recover from a directory and print its measurements.
const recoverDir = "SAMYA_TEST_RECOVER"

// TestRecoverChild is the process that BenchmarkRecovery measures.
func TestRecoverChild(t *testing.T) {
	dir := os.Getenv(recoverDir)
	if dir == "" {
		t.Skip("run by BenchmarkRecovery")
	}
	r, err := recoverFrom(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkRecovery starts, in a process of its own, on a log of 10 million requests,
// none of them carried over: 680 MB, which is more than the defaults let a log become. It
// measures opening the store, reading it back, and making a core of it. Processor time,
// on 2 cores that others used as well: 2.6 s to open, with 194 MiB at most; .01 s to read
// back all but the requests; 3.9 s for the core, which reads and remembers 10 million
// requests, with 733 MiB at most.
func BenchmarkRecovery(b *testing.B) {
	const requests = 10_000_000
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		dir := b.TempDir()
		logRequests(b, dir, requests)
		cmd := exec.CommandContext(context.Background(), self, "-test.run", "^TestRecoverChild$")
		cmd.Env = append(os.Environ(), recoverDir+"="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		var r recovered
		if err := json.NewDecoder(bytes.NewReader(out)).Decode(&r); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		r.check(b, requests)
		for name, st := range map[string]stage{"open": r.Open, "load": r.Load, "core": r.Core} {
			b.ReportMetric(st.Took.Seconds(), name+"-s")
			b.ReportMetric(st.Processors.Seconds(), name+"-cpu-s")
			b.ReportMetric(float64(st.Peak)/(1<<20), name+"-MiB")
		}
	}
}
