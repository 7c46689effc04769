package failuretest

import (
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samya-db/samya/devcluster/proc"
)

// ratedEnv is how long TestDefaultsBearTheRate makes load, as in 1h. Without it the test is
// left out of all forms: it takes a machine of its own.
const ratedEnv = "SAMYA_TEST_RATED"

const (
	// ratedEach is the number of requests that are due every ratedTick: 50,000 a second.
	ratedEach, ratedTick = 500, 10 * time.Millisecond
	// ratedSteady is when the records of the retention, 5 minutes, have come and begun to
	// go, twice over.
	ratedSteady = 10 * time.Minute
	// ratedMost bounds resident memory, in kB.
	ratedMost = 1_200_000
)

// TestDefaultsBearTheRate makes 50,000 requests a second of a site with default flags. The
// site refuses none. From the tenth minute on its memory is flat.
func TestDefaultsBearTheRate(t *testing.T) {
	text := os.Getenv(ratedEnv)
	if text == "" {
		t.Skipf("%s is not set", ratedEnv)
	}
	span, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	cluster := start(t, proc.Config{Sites: []string{"us"}})
	site := cluster.Site(0)
	c := dial(t, site)
	create(t, 1<<40, c)

	due := make(chan int, 1000)
	var callers sync.WaitGroup
	var refused, made atomic.Int64
	for range fillCallers {
		callers.Go(func() {
			for first := range due {
				if t.Failed() {
					continue // the rest of due
				}
				out, err := c.Batch(t.Context(), fillOf(first, fillBatch))
				if err != nil {
					t.Error(err)
					continue
				}
				for _, r := range out.GetResults() {
					if r.GetAcquire() == nil {
						refused.Add(1)
					}
				}
				made.Add(fillBatch)
			}
		})
	}
	tick := time.NewTicker(ratedTick)
	defer tick.Stop()
	began, next, minute := time.Now(), 0, 1
	var steady, last footprint
	for time.Since(began) < span && !t.Failed() {
		<-tick.C
		for wanted := int(time.Since(began) / ratedTick * ratedEach); next < wanted; next += fillBatch {
			due <- next
		}
		if passed := time.Since(began); passed >= time.Duration(minute)*time.Minute {
			last = footprintOf(t, site)
			t.Logf("minute %d: %d requests, %d refused, %d kB resident, %d kB of them of files, at most %d kB, %d kB of disk",
				minute, made.Load(), refused.Load(), last.rss, last.rss-last.own, last.peak, last.disk)
			minute++
			if steady.rss == 0 && passed >= ratedSteady {
				steady = last
			}
		}
	}
	close(due)
	callers.Wait()
	if n := refused.Load(); n > 0 {
		t.Errorf("%d of %d requests were refused", n, made.Load())
	}
	if late := next - int(made.Load()); late > 0 && !t.Failed() {
		t.Errorf("%d requests were not made", late)
	}
	if last.peak > ratedMost {
		t.Errorf("%d kB resident, at most %d", last.peak, ratedMost)
	}
	if last.rss > steady.rss+steady.rss/10 {
		t.Errorf("memory grows from %d kB to %d kB", steady.rss, last.rss)
	}
	report(t, figures{{"requests", made.Load()}, {"kB steady", steady.rss}, {"kB at the end", last.rss}, {"kB at the peak", last.peak}})
}
