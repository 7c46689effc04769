package compare

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// The dimensions of the chart, in pixels.
const (
	chartWidth = 1100
	chartLeft  = 330 // where the bars begin
	chartRight = 150 // room for the longest bar's label
	chartTop   = 92
	chartFoot  = 56
	rowHeight  = 34
	barHeight  = 11
	systemGap  = 10
)

// kindColors are the colours of the kinds of systems.
var kindColors = []struct {
	kind  Kind
	color string
	about string
}{
	{Durable, "#0b69a3", "durable: synced before the answer"},
	{Volatile, "#d9822b", "volatile: a crash takes answers back"},
	{Control, "#9aa5b1", "control: nothing is granted"},
}

func colorOf(kind Kind) string {
	for _, k := range kindColors {
		if k.kind == kind {
			return k.color
		}
	}
	return "#000000"
}

// chartRow is a way of asking a system.
type chartRow struct {
	system, way string
	kind        Kind
	rates       map[Workload]float64
}

// WriteSVG draws the median rates as bars on a logarithmic axis: for each way, the
// hot entity above the many entities.
func (r *Report) WriteSVG(w io.Writer) error {
	rows := r.chartRows()
	if len(rows) == 0 {
		return fmt.Errorf("chart: %w", errNothing)
	}
	low, high := r.powers()
	x := func(rate float64) float64 {
		return chartLeft + (chartWidth-chartLeft-chartRight)*(math.Log10(rate)-float64(low))/float64(high-low)
	}
	height := chartTop + chartFoot
	for i, row := range rows {
		height += rowHeight
		if i > 0 && rows[i-1].system != row.system {
			height += systemGap
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="Helvetica, Arial, sans-serif" font-size="12">
<title>Acquires a second</title>
<rect width="100%%" height="100%%" fill="#ffffff"/>
<text x="20" y="30" font-size="17" font-weight="600" fill="#1f2933">Acquires a second, each with an id that is remembered</text>
<text x="20" y="50" fill="#52606d">%s</text>
`, chartWidth, height, html.EscapeString(fmt.Sprintf("Medians of %d rounds of %g s on %d cores, load generator included; logarithmic.", r.Rounds, r.Seconds, r.Cores)))
	at := 20
	for _, k := range kindColors {
		fmt.Fprintf(&b, "<rect x=\"%d\" y=\"62\" width=\"14\" height=\"11\" fill=\"%s\"/>\n<text x=\"%d\" y=\"72\" fill=\"#1f2933\">%s</text>\n", at, k.color, at+20, k.about)
		at += 255
	}
	fmt.Fprintf(&b, "<text x=\"%d\" y=\"72\" fill=\"#52606d\">pale: 10,000 entities, Zipf 0.99</text>\n", at)
	for p := low; p <= high; p++ {
		rate := math.Pow10(p)
		fmt.Fprintf(&b, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#e4e7eb\"/>\n", x(rate), x(rate), chartTop-4, height-chartFoot+6)
		fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" fill=\"#52606d\">%s</text>\n", x(rate), height-chartFoot+22, thousands(rate))
	}
	fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\" fill=\"#52606d\">operations a second</text>\n", chartWidth-20, height-14)
	y := chartTop
	for i, row := range rows {
		first := i == 0 || rows[i-1].system != row.system
		if i > 0 && first {
			y += systemGap
		}
		if first {
			fmt.Fprintf(&b, "<text x=\"20\" y=\"%d\" font-weight=\"600\" fill=\"#1f2933\">%s</text>\n", y+16, html.EscapeString(row.system))
		}
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\" fill=\"#1f2933\">%s</text>\n", chartLeft-10, y+16, html.EscapeString(row.way))
		bar := y + 4
		for _, load := range []Workload{Hot, Zipf} {
			rate, ok := row.rates[load]
			if !ok {
				continue
			}
			opacity := "1"
			if load == Zipf {
				opacity = ".45"
			}
			fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\" fill-opacity=\"%s\"/>\n",
				chartLeft, bar, max(x(rate)-chartLeft, 1), barHeight, colorOf(row.kind), opacity)
			fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%d\" font-size=\"11\" fill=\"#1f2933\">%s</text>\n", x(rate)+5, bar+barHeight-2, thousands(rate))
			bar += barHeight + 2
		}
		y += rowHeight
	}
	b.WriteString("</svg>\n")
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the chart: %w", err)
	}
	return nil
}

// chartRows returns the ways of all systems, in order.
func (r *Report) chartRows() []chartRow {
	var rows []chartRow
	for _, m := range r.Cells {
		n := len(rows)
		if n == 0 || rows[n-1].system != m.System || rows[n-1].way != m.Way {
			rows = append(rows, chartRow{system: m.System, way: m.Way, kind: m.Kind, rates: make(map[Workload]float64)})
			n++
		}
		rows[n-1].rates[m.Workload] = m.Median.Rate
	}
	return rows
}

// powers returns the exponents of the powers of ten that enclose all rates, at
// least one apart.
func (r *Report) powers() (low, high int) {
	least, most := math.Inf(1), 0.0
	for _, m := range r.Cells {
		least, most = min(least, m.Median.Rate), max(most, m.Median.Rate)
	}
	low = int(math.Floor(math.Log10(least)))
	return low, max(int(math.Ceil(math.Log10(most))), low+1)
}
