package judge

import (
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/samya-db/samya/predict"
)

// Plot is a picture of demand and forecasts.
type Plot struct {
	Title string
	// Step is the length of a bin in seconds.
	Step int64
	// First is the first bin of the picture; it ends with the last bin.
	First   int
	Horizon int
	Bins    []predict.Bin
	// Forecasts are the forecasts made after each bin.
	Forecasts []predict.Forecast
}

// The size and the frame of the picture, in pixels.
const (
	plotWidth, plotHeight = 1100, 460
	plotLeft, plotRight   = 78, 24
	plotTop, plotBottom   = 74, 54
)

// frame maps bins and tokens to pixels.
type frame struct {
	first, last int
	low, high   float64
}

func (f *frame) x(bin int) float64 {
	return plotLeft + (plotWidth-plotLeft-plotRight)*float64(bin-f.first)/float64(max(1, f.last-f.first))
}

func (f *frame) y(tokens float64) float64 {
	tokens = min(max(tokens, f.low), f.high)
	return plotTop + (plotHeight-plotTop-plotBottom)*(f.high-tokens)/(f.high-f.low)
}

// WriteSVG draws the net demand and the expected demand of each epoch where it
// begins. A band shows the tokens to hold, from the median to the high quantile of
// the peak. Dots are stalled epochs, with a peak above the band.
func (p *Plot) WriteSVG(w io.Writer) error {
	f := frame{first: max(p.First, 1), last: len(p.Bins) - p.Horizon}
	if f.last <= f.first {
		return fmt.Errorf("plot: no epoch of %d bins after bin %d of %d", p.Horizon, p.First, len(p.Bins))
	}
	net, peak := make([]float64, f.last-f.first+1), make([]float64, f.last-f.first+1)
	for i := range net {
		at := f.first + i
		net[i], peak[i] = Epoch(p.Bins[at : at+p.Horizon])
		told := p.Forecasts[at-1]
		for _, v := range [...]float64{net[i], peak[i], told.Expected, told.High} {
			if !math.IsNaN(v) {
				f.low, f.high = min(f.low, v), max(f.high, v)
			}
		}
	}
	step := tick((f.high - f.low) / 5)
	f.low, f.high = step*math.Floor(f.low/step), step*math.Ceil(f.high/step+.2)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="Helvetica, Arial, sans-serif" font-size="12">
<title>%s</title>
<rect width="100%%" height="100%%" fill="#ffffff"/>
<text x="%d" y="30" font-size="17" font-weight="600" fill="#1f2933">%s</text>
`, plotWidth, plotHeight, html.EscapeString(p.Title), plotLeft, html.EscapeString(p.Title))
	p.axes(&b, &f, step)
	told := func(of func(predict.Forecast) float64) func(int) float64 {
		return func(i int) float64 { return of(p.Forecasts[f.first+i-1]) }
	}
	high := told(func(f predict.Forecast) float64 { return f.High })
	median := told(func(f predict.Forecast) float64 { return f.Median })
	b.WriteString(`<path fill="#f2b134" fill-opacity=".32" d="`)
	for i := range net {
		fmt.Fprintf(&b, "%s%.1f %.1f", letter(i == 0), f.x(f.first+i), f.y(high(i)))
	}
	for i := range slices.Backward(net) {
		fmt.Fprintf(&b, "L%.1f %.1f", f.x(f.first+i), f.y(median(i)))
	}
	b.WriteString("Z\"/>\n")
	line(&b, &f, "#52606d", 1.1, len(net), func(i int) float64 { return net[i] })
	line(&b, &f, "#0b69a3", 1.8, len(net), told(func(f predict.Forecast) float64 { return f.Expected }))
	for i := range net {
		if peak[i] > high(i) {
			fmt.Fprintf(&b, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"#ba2525\"/>\n", f.x(f.first+i), f.y(peak[i]))
		}
	}
	legend(&b)
	b.WriteString("</svg>\n")
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the plot: %w", err)
	}
	return nil
}

func letter(first bool) string {
	if first {
		return "M"
	}
	return "L"
}

// line draws values, with a break at each missing value.
func line(b *strings.Builder, f *frame, color string, width float64, count int, value func(int) float64) {
	fmt.Fprintf(b, `<path fill="none" stroke="%s" stroke-width="%.1f" stroke-linejoin="round" d="`, color, width)
	gap := true
	for i := range count {
		v := value(i)
		if math.IsNaN(v) {
			gap = true
			continue
		}
		fmt.Fprintf(b, "%s%.1f %.1f", letter(gap), f.x(f.first+i), f.y(v))
		gap = false
	}
	b.WriteString("\"/>\n")
}

// axes draws the grid and its numbers.
func (p *Plot) axes(b *strings.Builder, f *frame, step float64) {
	for v := f.low; v <= f.high+step/2; v += step {
		color := "#e4e7eb"
		if math.Abs(v) < step/2 {
			color, v = "#9aa5b1", 0
		}
		fmt.Fprintf(b, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", plotLeft, plotWidth-plotRight, f.y(v), f.y(v), color)
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\" fill=\"#52606d\">%.6g</text>\n", plotLeft-8, f.y(v)+4, v)
	}
	unit, name := int64(3600), "hours"
	span := int64(f.last-f.first) * p.Step
	switch {
	case span > 4*86400:
		unit, name = 86400, "days"
	case span < 2*3600:
		unit, name = 60, "minutes"
	}
	each := max(1, int64(tick(float64(span)/float64(unit)/8)))
	for t := int64(0); t*unit <= span; t += each {
		x := f.x(f.first) + (f.x(f.last)-f.x(f.first))*float64(t*unit)/float64(max(1, span))
		fmt.Fprintf(b, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#9aa5b1\"/>\n", x, x, plotHeight-plotBottom, plotHeight-plotBottom+5)
		fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" fill=\"#52606d\">%d</text>\n", x, plotHeight-plotBottom+20, t)
	}
	fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\" fill=\"#52606d\">%s</text>\n", plotWidth-plotRight, plotHeight-14, name)
	fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\" fill=\"#52606d\">tokens</text>\n", plotLeft-8, plotTop-10)
}

// legend draws the key of the picture.
func legend(b *strings.Builder) {
	x := plotLeft
	for _, l := range [...]struct {
		mark, text string
		width      int
	}{
		{`<line x1="%d" x2="%d" y1="52" y2="52" stroke="#52606d" stroke-width="1.1"/>`, "net demand", 110},
		{`<line x1="%d" x2="%d" y1="52" y2="52" stroke="#0b69a3" stroke-width="1.8"/>`, "expected", 96},
		{`<rect x="%d" y="46" width="%d" height="12" fill="#f2b134" fill-opacity=".32"/>`, "peak: median to high quantile", 212},
		{`<circle cx="%d" cy="52" r="%d" fill="#ba2525"/>`, "stalled", 80},
	} {
		to := x + 24
		switch {
		case strings.HasPrefix(l.mark, "<rect"):
			to = 24
		case strings.HasPrefix(l.mark, "<circle"):
			x, to = x+18, 3
		}
		fmt.Fprintf(b, l.mark+"\n", x, to)
		fmt.Fprintf(b, "<text x=\"%d\" y=\"56\" fill=\"#1f2933\">%s</text>\n", x+30, l.text)
		x += 30 + l.width
	}
}

// tick rounds up to 1, 2 or 5 times a power of ten.
func tick(x float64) float64 {
	if !(x > 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range [...]float64{1, 2, 5} {
		if m*power >= x {
			return m * power
		}
	}
	return 10 * power
}
