package preset

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/samya-db/samya/internal/name"
)

// TestPresets: each preset sets every timing, and its timings fit each other.
func TestPresets(t *testing.T) {
	for n, timings := range presets {
		for _, row := range table {
			if d := row.of(&timings, timings.Gossip()); d < 50*time.Millisecond || d > time.Minute {
				t.Errorf("%s: %s %s: %v", n, row.name, row.meaning, d)
			}
		}
		if timings.TakeoverTime < 3*timings.CollectTime {
			t.Errorf("%s: takeover after %v, collection for %v", n, timings.TakeoverTime, timings.CollectTime)
		}
		if n.Check() != nil {
			t.Errorf("%s: %v", n, n.Check())
		}
	}
	if _, ok := errors.AsType[*name.Error](Name("moon").Check()); !ok || Name("").Check() != nil {
		t.Errorf("moon: %v; none: %v", Name("moon").Check(), Name("").Check())
	}
	if got := Values(""); len(got) != 5 || got["collect-time"] != presets[WAN].CollectTime {
		t.Errorf("without a name: %v", got)
	}
	if len(Values("moon")) != 0 {
		t.Error("moon has values")
	}
}

// TestFlags: each setting of the table makes a flag, with the value of wan as its
// default. The page lists each flag.
func TestFlags(t *testing.T) {
	var page strings.Builder
	if err := Reference(&page); err != nil {
		t.Fatal(err)
	}
	for key, value := range Values(WAN) {
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		var d time.Duration
		Var(f, &d, key)
		if flag := f.Lookup(key); flag == nil || d != value || flag.DefValue != value.String() {
			t.Errorf("%s: %v, %v", key, flag, d)
		}
		if !strings.Contains(page.String(), "\n| `"+key+"` | "+value.String()+" | ") {
			t.Errorf("the page lacks %s", key)
		}
	}
}

// TestBetween: a timing is at least a millisecond and at most a minute, unless it is left
// out.
func TestBetween(t *testing.T) {
	for d, good := range map[time.Duration]bool{
		0: true, time.Millisecond: true, time.Minute: true,
		-1: false, time.Millisecond - 1: false, time.Minute + 1: false,
	} {
		if err := Between("try-time", d); (err == nil) != good || err != nil && !strings.Contains(err.Error(), "from 1ms to 1m") {
			t.Errorf("%v: %v", d, err)
		}
	}
}
