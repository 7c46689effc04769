package predict

import (
	"runtime"
	"syscall"
	"testing"
)

// BenchmarkAutoEntities is an epoch of a site with 100,000 entities, a fifth of them with
// traffic, with forecasts of twelve bins. It reports nanoseconds of processor time and
// bytes for each of all entities, and for each with traffic. The models have seen five
// days of 24 bins, so that all of the state is there.
func BenchmarkAutoEntities(b *testing.B) {
	const entities, busy = 100_000, 20_000
	o := Options{Horizon: 12, Day: 24}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	// An entity has a model from its first acquire on.
	models := make([]Durable, entities)
	series := demand(1, 120)
	for i := range busy {
		models[i] = mustModel(b, Auto, o)
		for _, bin := range series {
			models[i].Observe(bin)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ResetTimer()
	began := processor(b)
	for i := range b.N {
		for _, m := range models[:busy] {
			m.Observe(series[i%len(series)])
			_ = m.Forecast()
		}
	}
	ns := float64(processor(b)-began) / float64(b.N)
	bytes := float64(after.HeapAlloc - before.HeapAlloc)
	b.ReportMetric(ns/entities, "ns/entity")
	b.ReportMetric(ns/busy, "ns/busy-entity")
	b.ReportMetric(bytes/entities, "B/entity")
	b.ReportMetric(bytes/busy, "B/busy-entity")
	runtime.KeepAlive(models)
}

// processor is the processor time used, which other programs do not disturb.
func processor(b *testing.B) int64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkModels is a bin and its forecast, a bin ahead, fits included.
func BenchmarkModels(b *testing.B) {
	series := demand(2, 2000)
	for _, name := range Names() {
		if name == LSTM {
			continue // see docs/forecasting.md
		}
		b.Run(name, func(b *testing.B) {
			m := mustModel(b, name, Options{Day: 24})
			for i := range b.N {
				m.Observe(series[i%len(series)])
				_ = m.Forecast()
			}
		})
	}
}
