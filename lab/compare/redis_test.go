package compare

import (
	"errors"
	"testing"

	"github.com/samya-db/samya/internal/testfuzz"
)

func TestParseBenchmark(t *testing.T) {
	const heads = `"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"`
	const row = `"evalsha 9f1 2 acme/hot id-__rand_int__ 1 60","57040.50","0.5","0.1","0.42","1.2","8.103","12.3"`
	s, err := parseBenchmark(heads + "\n" + row + "\n")
	if err != nil || s.Rate != 57040.5 || s.P50 != 420 || s.P99 != 8103 {
		t.Errorf("%+v %v", s, err)
	}
	for name, bad := range map[string]string{
		"nothing": "", "heads alone": heads + "\n", "other heads": `"test","speed"` + "\n" + row,
		"no number": heads + "\n" + `"x","fast","0.5","0.1","0.42","1.2","8.103","12.3"`,
		"zero":      heads + "\n" + `"x","0","0.5","0.1","0.42","1.2","8.103","12.3"`,
		"short":     heads + "\n" + `"x"`,
	} {
		if _, err := parseBenchmark(bad); !errors.Is(err, errBenchmark) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParseBenchmark(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add("\"test\",\"rps\",\"p50_latency_ms\",\"p99_latency_ms\"\n\"x\",\"1\",\"2\",\"3\"\n")
	f.Add("a\nb")
	f.Fuzz(func(t *testing.T, csv string) {
		s, err := parseBenchmark(csv)
		if err == nil && !(s.Rate > 0 && s.P50 > 0 && s.P99 > 0) {
			t.Errorf("%q: %+v", csv, s)
		}
	})
}
