package site_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/samya-db/samya/client"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/store"
)

// BenchmarkBackup measures a site under full load in turns: as long as a backup takes, and
// as long without one. It reports the ratio of the rates, the 99th percentile of the time
// that a call takes, the longest time of a turn in which no call was answered, and the
// processor time of the site. Every backup is verified after its turn.
//
// Callers, site and the reader of the backup share the processors.
func BenchmarkBackup(b *testing.B) {
	for _, load := range []struct {
		name          string
		callers, each int
	}{{"calls", 64, 1}, {"batches", 16, 100}} {
		b.Run(load.name, func(b *testing.B) { backupUnder(b, load.callers, load.each) })
	}
}

func backupUnder(b *testing.B, callers, each int) {
	b.Helper()
	s := startSite(b, buildSamya(b), "--request-retention", "15s", "--max-requests", "8000000")
	c, err := client.New(client.Config{
		Region: "us", Targets: []client.Target{{Address: s.addr, Region: "us"}}, Timeout: 2 * time.Second, RepeatTime: 2 * time.Second,
	})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close(context.WithoutCancel(b.Context())) }()
	run := func(until func()) turn {
		before := s.cpu(b)
		t := loaded(b, c, callers, each, until)
		t.cpu = float64((s.cpu(b) - before).Microseconds()) / t.calls / float64(each)
		return t
	}
	pause := func(d time.Duration) func() {
		return func() {
			timer := time.NewTimer(d)
			defer timer.Stop()
			<-timer.C
		}
	}
	site := samyav1.NewSiteServiceClient(dial(b, s.addr))
	var sizes, seconds []float64
	var raw []byte
	last := time.Second
	backup := func() {
		at := time.Now()
		raw = taken(b, site)
		last = time.Since(at)
		sizes, seconds = append(sizes, float64(len(raw))/1e6), append(seconds, last.Seconds())
	}
	run(pause(16 * time.Second)) // fills the table of requests
	const turns = 15
	var without, with []turn
	b.ResetTimer()
	for range b.N * turns {
		with = append(with, run(backup))
		if _, err := store.Verify(bytes.NewReader(raw)); err != nil {
			b.Fatal(err)
		}
		without = append(without, run(pause(last)))
	}
	b.StopTimer()
	rate := func(t turn) float64 { return t.rate }
	b.ReportMetric(medianOf(with, rate)/medianOf(without, rate), "ratio")
	b.ReportMetric(medianOf(without, rate)*float64(each), "ops/s")
	for name, turns := range map[string][]turn{"alone": without, "backup": with} {
		b.ReportMetric(medianOf(turns, func(t turn) float64 { return t.p99 }), name+"-call-p99-ms")
		b.ReportMetric(medianOf(turns, func(t turn) float64 { return t.cpu }), name+"-site-cpu-µs/op")
		b.ReportMetric(medianOf(turns, func(t turn) float64 { return t.gap }), name+"-gap-ms")
		gaps := make([]float64, len(turns))
		for i := range turns {
			gaps[i] = turns[i].gap
		}
		slices.Sort(gaps)
		b.ReportMetric(gaps[(len(gaps)-1)*99/100], name+"-gap-p99-ms")
	}
	b.ReportMetric(median(sizes), "MB")
	b.ReportMetric(median(seconds), "s/backup")
	b.ReportMetric(float64(len(sizes)), "backups")
	b.ReportMetric(0, "ns/op")
}

// taken takes a backup.
func taken(b *testing.B, site samyav1.SiteServiceClient) []byte {
	b.Helper()
	stream, err := site.Backup(b.Context(), &samyav1.BackupRequest{})
	if err != nil {
		b.Fatal(err)
	}
	var raw []byte
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return raw
		}
		if err != nil {
			b.Fatal(err)
		}
		raw = append(raw, m.GetData()...)
	}
}

// turn are the figures of a part of the load.
type turn struct {
	// rate is calls a second; p99 and gap are milliseconds; cpu is the site's microseconds
	// of processor time an operation.
	rate, p99, gap, calls, cpu float64
}

// loaded has callers make calls of each operations until a function returns.
func loaded(b *testing.B, c *client.Client, callers, each int, until func()) turn {
	b.Helper()
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	var mu sync.Mutex
	var took []time.Duration
	var ends []time.Time
	var wg sync.WaitGroup
	began := time.Now()
	for range callers {
		wg.Go(func() {
			var mine []time.Duration
			var at []time.Time
			ops := make([]client.Op, each)
			for ctx.Err() == nil {
				for i := range ops {
					ops[i] = client.AcquireOp("acme/vm", 1)
				}
				from := time.Now()
				results, err := c.Batch(b.Context(), ops...)
				if err != nil || results[0].Err != nil {
					b.Error(err, results[:min(1, len(results))])
					return
				}
				now := time.Now()
				mine, at = append(mine, now.Sub(from)), append(at, now)
			}
			mu.Lock()
			defer mu.Unlock()
			took, ends = append(took, mine...), append(ends, at...)
		})
	}
	until()
	stop()
	wg.Wait()
	if len(took) == 0 {
		b.Fatal("no call was answered")
	}
	t := turn{rate: float64(len(took)) / time.Since(began).Seconds(), calls: float64(len(took))}
	slices.Sort(took)
	slices.SortFunc(ends, time.Time.Compare)
	t.p99 = took[len(took)*99/100].Seconds() * 1e3
	for i := range ends[1:] {
		t.gap = max(t.gap, ends[i+1].Sub(ends[i]).Seconds()*1e3)
	}
	return t
}

func medianOf(turns []turn, figure func(turn) float64) float64 {
	all := make([]float64, len(turns))
	for i, t := range turns {
		all[i] = figure(t)
	}
	return median(all)
}
