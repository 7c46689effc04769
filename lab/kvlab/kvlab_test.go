package kvlab

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/lab/ycsb"
)

func workload(t *testing.T, name string, records, clients int) *ycsb.Workload {
	t.Helper()
	mix, err := ycsb.MixOf(name)
	if err != nil {
		t.Fatal(err)
	}
	w, err := ycsb.New(ycsb.Options{Mix: mix, Records: records, Clients: clients, ScanMin: 2, ScanMax: 8, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestRun runs the workloads A, D, E and F on a store that counts its requests.
func TestRun(t *testing.T) {
	for _, name := range []string{"A", "D", "E", "F"} {
		w := workload(t, name, 100, 4)
		f := newFake()
		n, err := Preload(t.Context(), f, Writes(w.Names()), 64)
		if err != nil || n != 100 || f.writes != 100 {
			t.Fatalf("%s: preloaded %d, wrote %d: %v", name, n, f.writes, err)
		}
		want := map[ycsb.Kind]int{}
		var sources []Source
		for _, ops := range Make(w, 4, 500) {
			for _, op := range ops {
				want[op.Kind]++
			}
			sources = append(sources, Prepared(ops))
		}
		r, err := Run(t.Context(), f, &Load{Clients: sources, ValueSize: 64})
		if err != nil {
			t.Fatal(err)
		}
		if f.reads != want[ycsb.Read] || f.writes != 100+want[ycsb.Write] || f.scans != want[ycsb.Scan] || f.executes != want[ycsb.Modify] {
			t.Errorf("%s: %d reads, %d writes, %d scans, %d executes, want %v", name, f.reads, f.writes, f.scans, f.executes, want)
		}
		if r.Operations != 2000 || r.Store.Operations != 2000 || r.Store.Multi != int64(f.scans) || r.Elapsed <= 0 ||
			r.Latency.TotalCount() != 2000/timed-2 {
			t.Errorf("%s: %+v, %d timed", name, r, r.Latency.TotalCount())
		}
		if got := r.MultiShare(); got != float64(f.scans)/2000 {
			t.Errorf("%s: share %v", name, got)
		}
		first, last := r.Samples[0], r.Samples[len(r.Samples)-1]
		if first.Operations != 0 && len(r.Samples) < 2 || last.Operations != 2000 || last.Memory <= 0 {
			t.Errorf("%s: samples %+v", name, r.Samples)
		}
		for key, v := range f.values {
			if len(v) != 64 {
				t.Fatalf("%s: %s has %d bytes", name, key, len(v))
			}
		}
	}
}

// TestPreloadLoads checks that a store that can be loaded is, and is written to later.
func TestPreloadLoads(t *testing.T) {
	w := workload(t, "A", 50, 1)
	l := &loads{fake: newFake()}
	if _, err := Preload(t.Context(), l, Writes(w.Names()), 8); err != nil || l.loaded != 50 || l.writes != 0 {
		t.Errorf("%v: %d loaded, %d written", err, l.loaded, l.writes)
	}
	if _, err := Run(t.Context(), l, &Load{Clients: []Source{Writes(w.Names())}}); err != nil || l.loaded != 50 || l.writes != 50 {
		t.Errorf("%v: %d loaded, %d written", err, l.loaded, l.writes)
	}
}

type loads struct {
	*fake
	loaded int
}

func (l *loads) Load(context.Context, string, []byte) error {
	l.loaded++
	return nil
}

// TestRunDuration checks that a load without an end ends in time, with samples.
func TestRunDuration(t *testing.T) {
	w := workload(t, "C", 10, 2)
	var told int
	r, err := Run(t.Context(), newFake(), &Load{
		Clients:  []Source{Endless(w.Client(0)), Endless(w.Client(1))},
		Duration: 50 * time.Millisecond, Every: 5 * time.Millisecond, Sampled: func(Sample) { told++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Operations == 0 || r.NotFound != r.Operations || told != len(r.Samples) || told < 3 || r.Elapsed < 50*time.Millisecond {
		t.Errorf("%d operations, %d not found, %d samples, told %d, %v", r.Operations, r.NotFound, len(r.Samples), told, r.Elapsed)
	}
	for i, s := range r.Samples[1:] {
		if s.Operations < r.Samples[i].Operations || s.Elapsed < r.Samples[i].Elapsed {
			t.Errorf("sample %d goes back: %+v", i+1, s)
		}
	}
}

func TestRunErrors(t *testing.T) {
	w := workload(t, "A", 10, 2)
	f := newFake()
	f.fail = errors.New("disk full")
	if _, err := Run(t.Context(), f, &Load{Clients: []Source{Endless(w.Client(0)), Endless(w.Client(1))}}); !errors.Is(err, f.fail) {
		t.Errorf("%v, want the store's error", err)
	}
	if _, err := Preload(t.Context(), f, Writes(w.Names()), 8); !errors.Is(err, f.fail) {
		t.Errorf("%v, want the store's error", err)
	}
	broken := errors.New("broken")
	if _, err := Run(t.Context(), newFake(), &Load{Clients: []Source{Endless(w.Client(0)), fails{broken}}, Duration: time.Minute}); !errors.Is(err, broken) {
		t.Errorf("%v, want the source's error", err)
	}
}

func TestRunCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := errors.New("enough")
	w := workload(t, "C", 10, 1)
	_, err := Run(ctx, newFake(), &Load{Clients: []Source{Endless(w.Client(0))}, Every: time.Millisecond, Sampled: func(s Sample) {
		if s.Operations > 0 {
			cancel(ended)
		}
	}})
	if !errors.Is(err, ended) {
		t.Errorf("%v, want why it was cancelled", err)
	}
}

type fails struct{ err error }

func (f fails) Next() (ycsb.Op, error) { return ycsb.Op{}, f.err }

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := Files(dir); err == nil {
		t.Error("no files are no error")
	}
	for name, text := range map[string]string{LoadFile: "1,a\n", "b.csv": "0,b\n0,c\n", "a.csv": "0,a\n", "c.csv": "0,d\nx\n", ".hidden": "no"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	clients, load, err := Files(dir)
	if err != nil || len(clients) != 3 || load != filepath.Join(dir, LoadFile) {
		t.Fatalf("%v, %q, %v", clients, load, err)
	}
	s := Open(clients...)
	var keys []string
	for {
		op, err := s.Next()
		if err != nil {
			if !strings.HasPrefix(err.Error(), filepath.Join(dir, "c.csv")+":2: ") {
				t.Errorf("%v, want file and line", err)
			}
			break
		}
		keys = append(keys, op.Key)
	}
	if got := strings.Join(keys, ""); got != "abcd" {
		t.Errorf("read %s", got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Limited(Open(clients[:2]...), 0).Next(); !errors.Is(err, io.EOF) {
		t.Errorf("%v, want io.EOF", err)
	}
	if _, err := Open(filepath.Join(dir, "none")).Next(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, want that it is not there", err)
	}
}
