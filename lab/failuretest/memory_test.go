package failuretest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/devcluster/ledger"
	"github.com/samya-db/samya/devcluster/proc"
)

// TestMemoryIsFlat keeps a site under a constant load, and compares its memory and disk
// after the warm-up and in the end. The retention of requests passes several times during
// the warm-up. The short form watches for seconds and so bounds a leak's rate less
// sharply.
func TestMemoryIsFlat(t *testing.T) {
	retention := pick(time.Second, 5*time.Second)
	warm, watch := pick(4*time.Second, 15*time.Second), pick(8*time.Second, 60*time.Second)
	// By itself a site collects nothing before its heap is worth it, and grows until
	// then, slowly at this load.
	t.Setenv("GOGC", "100")
	cluster := start(t, proc.Config{
		Sites: []string{"us"},
		// The database grows at checkpoints alone, so there are many of them.
		SiteArgs: []string{"--request-retention", retention.String(), "--checkpoint-interval", "500ms"},
	})
	site := cluster.Site(0)
	c := dial(t, site)
	create(t, 1_000_000, c)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan uint64)
	go func() { done <- constantLoad(ctx, t, c) }()
	defer func() {
		cancel()
		t.Logf("%d requests in all", <-done)
	}()

	pause(t, warm)
	before := footprints(t, site, watch/6)
	pause(t, watch*4/6)
	after := footprints(t, site, watch/6)
	t.Logf("over %s: memory %d kB, then %d kB (%+.1f %%); of that the process's own %d kB, then %d kB; data %d kB, then %d kB",
		watch, before.rss, after.rss, 100*(float64(after.rss)/float64(before.rss)-1), before.own, after.own, before.disk, after.disk)
	// Garbage makes memory go up and down by a tenth at this size.
	if after.rss > before.rss+before.rss/10 {
		t.Errorf("memory grows from %d kB to %d kB", before.rss, after.rss)
	}
	// The files grow in steps, up to the needs of the retention, the log between two
	// checkpoints, and their pages.
	if after.disk > 2*before.disk {
		t.Errorf("the data grows from %d kB to %d kB", before.disk, after.disk)
	}
	report(t, figures{
		{"kB of memory before", before.rss},
		{"kB of memory after", after.rss},
		{"kB of disk before", before.disk},
		{"kB of disk after", after.disk},
	})
}

// constantLoad acquires and releases about 800 times a second, in steps of 10 ms,
// until ctx ends, and returns how many requests it made.
func constantLoad(ctx context.Context, t *testing.T, c *client) (requests uint64) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return requests
		}
		for _, kind := range []ledger.Kind{ledger.Acquire, ledger.Release} {
			replies := make(chan answer, 4)
			for range cap(replies) {
				requests++
				a := answer{id: fmt.Sprint("constant-", requests), kind: kind, asked: 1}
				go func() { replies <- send(context.WithoutCancel(ctx), c, a, 0) }()
			}
			for range cap(replies) {
				if a := <-replies; a.reason != "" {
					t.Errorf("%+v", a)
				}
			}
		}
	}
}

// footprint is the memory and disk that a process takes, in kB.
type footprint struct {
	// rss is resident memory; own is the part of rss without a file behind it. peak is the
	// most that rss ever was; footprints leaves it out.
	rss, own, peak int64
	// disk is the size of its data: database and log.
	disk int64
}

// footprints watches a process for so long and returns the medians.
func footprints(t *testing.T, p *proc.Process, watch time.Duration) footprint {
	t.Helper()
	const times = 20
	var rss, own, disk []int64
	for range times {
		pause(t, watch/times)
		f := footprintOf(t, p)
		rss, own, disk = append(rss, f.rss), append(own, f.own), append(disk, f.disk)
	}
	median := func(v []int64) int64 {
		slices.Sort(v)
		return v[len(v)/2]
	}
	return footprint{rss: median(rss), own: median(own), disk: median(disk)}
}

func footprintOf(t *testing.T, p *proc.Process) footprint {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID()), "status"))
	if err != nil {
		t.Skipf("needs /proc: %v", err)
	}
	files, err := os.ReadDir(p.Data)
	if err != nil {
		t.Fatal(err)
	}
	var f footprint
	for _, file := range files {
		info, err := file.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // a file of the log that is done with
		}
		if err != nil {
			t.Fatal(err)
		}
		f.disk += info.Size() / 1024
	}
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}
		n, err := strconv.ParseInt(fields[1], 10, 64)
		switch {
		case err != nil:
		case fields[0] == "VmRSS:":
			f.rss = n
		case fields[0] == "RssAnon:":
			f.own = n
		case fields[0] == "VmHWM:":
			f.peak = n
		}
	}
	if f.rss == 0 || f.own == 0 {
		t.Fatalf("no memory in %s", status)
	}
	return f
}
