package earlylab_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/lab/earlylab"
)

// TestMeasure runs both applications in all modes. Measure compares the final states.
func TestMeasure(t *testing.T) {
	for _, app := range []string{earlylab.List, earlylab.KV} {
		for _, computed := range []bool{false, true} {
			o := earlylab.Default()
			o.App, o.Size, o.Shards, o.Threads, o.Writes, o.Global, o.Skew = app, 300, 3, 2, .3, .2, .4
			if computed {
				o.Batch = 7
			}
			o.Computed, o.Requests, o.Rounds, o.Now = computed, 1500, 2, time.Now
			rows, err := earlylab.Measure(t.Context(), &o)
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			if err := earlylab.WriteText(&text, rows); err != nil {
				t.Fatal(err)
			}
			stolen := 0.0
			for _, r := range rows {
				if stolen += r.Stolen; r.Rate <= 0 || !strings.Contains(text.String(), r.Mode) {
					t.Errorf("%+v in %s", r, &text)
				}
			}
			if len(rows) != 9 {
				t.Errorf("%d rows", len(rows))
			}
		}
	}
}

func TestBadOptions(t *testing.T) {
	for name, change := range map[string]func(*earlylab.Options){
		"app": func(o *earlylab.Options) { o.App = "queue" }, "size": func(o *earlylab.Options) { o.Size = 0 },
		"shards": func(o *earlylab.Options) { o.Shards = 65 }, "threads": func(o *earlylab.Options) { o.Threads = 1000 },
		"writes": func(o *earlylab.Options) { o.Writes = 1.1 }, "global": func(o *earlylab.Options) { o.Global = -1 },
		"skew": func(o *earlylab.Options) { o.Skew = 2 }, "requests": func(o *earlylab.Options) { o.Requests = 0 },
		"queue": func(o *earlylab.Options) { o.Queue = -1 }, "batch": func(o *earlylab.Options) { o.Batch = 1<<16 + 1 }, "rounds": func(o *earlylab.Options) { o.Rounds = 0 },
	} {
		o := earlylab.Default()
		change(&o)
		if _, err := earlylab.Measure(t.Context(), &o); !errors.Is(err, earlylab.ErrOptions) || !strings.Contains(err.Error(), "--"+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
