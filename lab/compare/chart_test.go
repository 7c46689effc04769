package compare

import (
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/samya-db/samya/lab/plot"
)

func TestChart(t *testing.T) {
	r := reached()
	volatile := measured(Cell{RedisEverySec, WaySingle, Zipf}, 50_000)
	volatile.Kind = Volatile
	r.Cells = append(r.Cells, measured(Cell{Samya, WayUnary + " <&>", Hot}, 8), measured(Cell{Samya, WayUnary + " <&>", Zipf}, 9), volatile,
		measured(Cell{RedisEverySec, WayPipelined, Hot}, 0))
	r.summarize()
	chart := r.Figure()
	var b strings.Builder
	if err := chart.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Acquires a second", "Medians of 3 rounds of 5 s on 2 cores", "operations a second", "durable", "volatile", "control", "pale", "400,000", "50,000",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q", want)
		}
	}
	groups := chart.Panels[0].(*plot.RowBars).Groups
	samya, redis := groups[len(groups)-2], groups[len(groups)-1]
	if samya.Name != Samya || kinds[samya.Kind] != Durable || len(samya.Rows) != 1 || samya.Rows[0].Value != 8 || samya.Rows[0].Pale != 9 {
		t.Errorf("samya has %+v", samya)
	}
	if redis.Name != RedisEverySec || kinds[redis.Kind] != Volatile || len(redis.Rows) != 2 || redis.Rows[0].Pale != 50_000 {
		t.Errorf("redis has %+v", redis)
	}
	for _, absent := range []float64{redis.Rows[0].Value, redis.Rows[1].Value, redis.Rows[1].Pale} {
		if !math.IsNaN(absent) {
			t.Errorf("a bar of %v without a rate", absent)
		}
	}
	if err := (&Report{}).Figure().WriteSVG(io.Discard); !errors.Is(err, plot.ErrFigure) {
		t.Errorf("an empty chart: %v", err)
	}
}
