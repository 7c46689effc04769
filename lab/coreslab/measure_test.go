package coreslab

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestCalibrate: each cost is measured, with a single entity and with several.
func TestCalibrate(t *testing.T) {
	for _, entities := range []int{1, 50} {
		c, err := Calibrate(t.Context(), Calibration{Dir: t.TempDir(), Entities: entities, Remembered: 5 * batch1, Rounds: 4})
		if err != nil {
			t.Fatal(err)
		}
		v := reflect.ValueOf(*c)
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			// A drain takes next to nothing of a request.
			if may := name == "Stepped" || name == "Served"; v.Field(i).Kind() == reflect.Float64 && !may && v.Field(i).Float() <= 0 {
				t.Errorf("%d entities: %s costs %v", entities, name, v.Field(i))
			}
		}
		if len(c.Syncs) == 0 || len(c.Pairs) == 0 || !slices.IsSorted(c.Syncs) || !slices.IsSorted(c.Pairs) {
			t.Errorf("syncs %v, pairs %v", c.Syncs, c.Pairs)
		}
		if c.Entities != entities || c.Table < c.Hot {
			t.Errorf("%+v", c)
		}
	}
	if _, err := Calibrate(t.Context(), Calibration{Dir: t.TempDir()}); !errors.Is(err, ErrOptions) {
		t.Errorf("no entities: %v", err)
	}
}

// TestReport: the tables have a row for each design, and a comparison.
func TestReport(t *testing.T) {
	c := costs()
	r := &Report{Costs: []*Costs{c}}
	o := Study{Callers: []int{64}, Cores: []int{1, 2}, Connections: 4}
	if err := o.rows(t.Context(), r, c); err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 2*len(plans) || r.Rows[0].Times != 1 {
		t.Fatalf("%d rows, the first %+v", len(r.Rows), r.Rows[0])
	}
	site := r.Rows[0].Result
	site.Rate *= .8
	r.Checks = []Check{{Entities: 1, Partitions: 1, Real: site, Model: r.Rows[0].Result, Error: .25}}
	var text, page strings.Builder
	if err := errors.Join(r.WriteText(&text), r.WriteMarkdown(&page)); err != nil {
		t.Fatal(err)
	}
	for _, p := range plans {
		if n := strings.Count(page.String(), "| "+p.name+" |"); n != 1 {
			t.Errorf("%d rows of %s in\n%s", n, p.name, &page)
		}
	}
	for _, want := range []string{"+25 %", "The mean error is 25 %", "own forgetting", "table hot", "sync, median"} {
		if !strings.Contains(text.String(), want) || !strings.Contains(page.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
	columns := 0
	for line := range strings.Lines(page.String()) {
		n := strings.Count(line, "|")
		if n > 0 && columns > 0 && n != columns {
			t.Errorf("not %d columns: %s", columns-1, line)
		}
		columns = n
	}
}
