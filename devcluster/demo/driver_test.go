package demo

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samya-db/samya/devcluster/load"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/httpapi/httpapitest"
)

// options returns the options of a short demo.
func options(stdout, stderr *strings.Builder) Options {
	return Options{
		Bin: "samya", Duration: 24 * time.Second, Day: 20 * time.Second, Entity: "acme/vm", Limit: 5000, Rate: 600,
		Stdout: stdout, Stderr: stderr,
	}
}

// drive drives the manager as the demo drives a cluster.
func drive(t *testing.T, opts *Options, m *httpapitest.Manager) (*Result, error) {
	t.Helper()
	var addrs []string
	for _, r := range Regions() {
		addrs = append(addrs, "http://"+r+":8080")
	}
	d := newDriver(opts, m, addrs)
	return d.drive(t.Context())
}

func TestDemoOfASoundCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stdout, stderr strings.Builder
		opts := options(&stdout, &stderr)
		m := httpapitest.New()
		r, err := drive(t, &opts, m)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Verdict(); err != nil || !r.ConservationOK {
			t.Errorf("verdict %v, conservation %t", err, r.ConservationOK)
		}
		if r.AcquiredBooks != m.Acquired("acme/vm") || r.AcquiredLedger != r.AcquiredBooks || r.MaxAcquired < r.AcquiredLedger {
			t.Errorf("%d by the ledger (at most %d), %d by the books, in truth %d", r.AcquiredLedger, r.MaxAcquired, r.AcquiredBooks, m.Acquired("acme/vm"))
		}
		if r.RPS < 550 || r.RPS > 650 || r.DurationS != 24 || r.Redistributions != 3 || r.RedistributionsPerMinute != 7.5 {
			t.Errorf("result %+v", r)
		}
		for _, region := range r.regions {
			if region.peak < opts.Limit/5 {
				t.Errorf("region %s held at most %d, less than a fifth of the limit", region.Region, region.peak)
			}
		}
		if !strings.Contains(r.text(), "OK: ") || strings.Count(stdout.String(), " requests ") < 2 {
			t.Errorf("printed\n%s\nand\n%s", stdout.String(), r.text())
		}
	})
}

func TestDemoSeesAnExceededLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stdout, stderr strings.Builder
		opts := options(&stdout, &stderr)
		m := httpapitest.New()
		m.Boundless = true
		m.Intercept = func(_ string, _ httpapi.Request, execute func() error) error { return execute() }
		d := newDriver(&opts, m, Regions())
		for i := range d.regions {
			d.regions[i].Target = func(time.Duration) float64 { return 1100 }
		}
		r, err := d.drive(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !errors.Is(r.Verdict(), ErrLimitExceeded) || r.MaxAcquired <= opts.Limit {
			t.Errorf("verdict %v with at most %d of %d out", r.Verdict(), r.MaxAcquired, opts.Limit)
		}
		if !strings.Contains(r.text(), "FAILED: the limit was exceeded") {
			t.Errorf("the summary does not say so:\n%s", r.text())
		}
	})
}

// treeOptions returns the options of a short demo of a hierarchy.
func treeOptions(stdout, stderr *strings.Builder) Options {
	opts := options(stdout, stderr)
	opts.Workload = Hierarchy
	return opts
}

func TestDemoOfASoundHierarchy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stdout, stderr strings.Builder
		opts := treeOptions(&stdout, &stderr)
		m := httpapitest.New()
		r, err := drive(t, &opts, m)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Verdict(); err != nil || !r.ConservationOK {
			t.Errorf("verdict %v, conservation %t", err, r.ConservationOK)
		}
		if r.Limit != 15_000 || r.MaxAcquired < 12_000 || r.AcquiredLedger != r.AcquiredBooks || len(r.Entities) != 27 {
			t.Errorf("result %+v", r)
		}
		refused, full := uint64(0), make(map[string]bool)
		for _, e := range r.Entities {
			if e.AcquiredBooks != m.Acquired(e.Name) || e.AcquiredLedger != e.AcquiredBooks || e.MaxAcquired < e.AcquiredLedger {
				t.Errorf("%+v, in truth %d are out", e, m.Acquired(e.Name))
			}
			if refused += e.Refused; e.Refused > 0 {
				full[e.Name] = true
			}
		}
		for _, name := range []string{"acme", "globex/web", "initech/web/prod"} {
			if !full[name] {
				t.Errorf("%s never lacked tokens; those that did: %v", name, full)
			}
		}
		if refused != r.Refused {
			t.Errorf("%d acquires were refused, %d by an entity", r.Refused, refused)
		}
		if text := r.text(); !strings.Contains(text, "OK: the limits of 3 orgs, 6 teams and 18 leaves held") || !strings.Contains(text, "\n    staging ") {
			t.Errorf("printed\n%s", text)
		}
		if !strings.Contains(stdout.String(), "limits kept: orgs 3 of 3, teams 6 of 6, leaves 18 of 18") {
			t.Errorf("printed\n%s", stdout.String())
		}
	})
}

func TestDemoSeesThatOnlyLeavesAreCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stdout, stderr strings.Builder
		opts := treeOptions(&stdout, &stderr)
		m := httpapitest.New()
		m.Flat = true
		r, err := drive(t, &opts, m)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []error{ErrLimitExceeded, ErrBooksDiffer, ErrLevelsDiffer} {
			if !errors.Is(r.Verdict(), want) {
				t.Errorf("verdict %v is not that %v", r.Verdict(), want)
			}
		}
		for _, name := range []string{"tokens of acme were out at once, its limit is 5000", "tokens of globex/web were out at once"} {
			if !strings.Contains(r.text(), name) {
				t.Errorf("the summary does not tell of %q:\n%s", name, r.text())
			}
		}
	})
}

func TestDemoSeesLostReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stdout, stderr strings.Builder
		opts := options(&stdout, &stderr)
		m := httpapitest.New()
		var n atomic.Uint64
		m.Intercept = func(op string, _ httpapi.Request, execute func() error) error {
			if op == "release" && n.Add(1)%100 == 0 {
				return nil // acknowledged and forgotten
			}
			return execute()
		}
		r, err := drive(t, &opts, m)
		if err != nil {
			t.Fatal(err)
		}
		if !errors.Is(r.Verdict(), ErrBooksDiffer) || r.ConservationOK {
			t.Errorf("verdict %v, conservation %t", r.Verdict(), r.ConservationOK)
		}
	})
}

func TestDemoSeesWhatStaysUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stdout, stderr strings.Builder
		opts := options(&stdout, &stderr)
		m := httpapitest.New()
		var n atomic.Uint64
		m.Intercept = func(_ string, r httpapi.Request, execute func() error) error {
			if n.Add(1) == 100 {
				return apierr.Unknown(r.RequestID, "", nil)
			}
			return execute()
		}
		r, err := drive(t, &opts, m)
		if err != nil {
			t.Fatal(err)
		}
		if !errors.Is(r.Verdict(), ErrUnresolved) || r.ConservationOK {
			t.Errorf("verdict %v, conservation %t", r.Verdict(), r.ConservationOK)
		}
	})
}

func TestJSONLine(t *testing.T) {
	var stdout, stderr strings.Builder
	opts := options(&stdout, &stderr)
	opts.JSON = true
	r := &Result{Granted: 1, P50MS: 1.25, entity: opts.Entity, verdict: ErrUnsettled}
	if err := publish(&opts, r); err != nil {
		t.Fatal(err)
	}
	if strings.Count(stdout.String(), "\n") != 1 || !strings.Contains(stderr.String(), "FAILED") {
		t.Errorf("on stdout\n%s\non stderr\n%s", stdout.String(), stderr.String())
	}
	var fields map[string]any
	if err := json.Unmarshal([]byte(stdout.String()), &fields); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"acquired_books", "acquired_ledger", "conservation_ok", "duration_s", "granted", "limit", "max_acquired", "p50_ms", "p99_ms",
		"redistributions", "redistributions_per_minute", "refused", "requests", "rps", "unknown_resolved",
	}
	if d := cmp.Diff(want, slices.Sorted(maps.Keys(fields))); d != "" {
		t.Errorf("fields (-want +got):\n%s", d)
	}
}

func TestUnsettledBooksAreTold(t *testing.T) {
	r := &Result{Limit: 10, MaxAcquired: 10, AcquiredBooks: 3, AcquiredLedger: 3}
	r.judge(false, 0)
	if !errors.Is(r.Verdict(), ErrUnsettled) || errors.Is(r.Verdict(), ErrLimitExceeded) || r.ConservationOK {
		t.Errorf("verdict %v, conservation %t", r.Verdict(), r.ConservationOK)
	}
}

func TestDriveEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stdout, stderr strings.Builder
		opts := options(&stdout, &stderr)
		d := newDriver(&opts, httpapitest.New(), Regions())
		d.regions = []load.Region{{Name: "us", Addr: "http://us", Target: holdings(5000, time.Minute, 0, 1)}}
		reason := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(reason) })
		begun := time.Now()
		if _, err := d.drive(ctx); !errors.Is(cause(ctx, err), reason) {
			t.Errorf("error %v, cause %v", err, cause(ctx, err))
		}
		if took := time.Since(begun); took > 4*time.Second {
			t.Errorf("took %s after the context ended at 3s", took)
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	tests := map[string]func(*Options){
		"duration": func(o *Options) { o.Duration = 0 },
		"day":      func(o *Options) { o.Day = -1 },
		"load":     func(o *Options) { o.Rate = 0 },
		"limit":    func(o *Options) { o.Limit = 1 << 53 },
		"workload": func(o *Options) { o.Workload = "forest" },
		"entity":   func(o *Options) { o.Entity = "a//b" },
	}
	var stdout, stderr strings.Builder
	good := options(&stdout, &stderr)
	if err := good.Check(); err != nil {
		t.Fatalf("the good ones: %v", err)
	}
	for field, spoil := range tests {
		t.Run(field, func(t *testing.T) {
			opts := options(&stdout, &stderr)
			spoil(&opts)
			if err := opts.Check(); err == nil || !strings.HasPrefix(err.Error(), field+":") {
				t.Errorf("error %v does not name %s", err, field)
			}
		})
	}
}
