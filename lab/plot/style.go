package plot

import (
	"image/color"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

var (
	ink   = color.RGBA{R: 0x1f, G: 0x29, B: 0x33, A: 0xff} // text and axes
	ruler = color.RGBA{R: 0xe4, G: 0xe7, B: 0xeb, A: 0xff} // grid
	shade = color.RGBA{R: 0xf6, G: 0xe3, B: 0xb0, A: 0xff} // spans
	amber = color.RGBA{R: 0xf6, G: 0xd4, B: 0x8a, A: 0xff} // bands
)

// rulers are the lines of a grid.
var rulers = draw.LineStyle{Color: ruler, Width: vg.Points(.25)}

// palette are the colours of series, in order. Neighbours differ in hue for most
// colour-blind eyes, and all colours differ in lightness.
var palette = []color.RGBA{
	{R: 0x0b, G: 0x38, B: 0x77, A: 0xff}, // blue
	{R: 0xf0, G: 0x92, B: 0x00, A: 0xff}, // orange
	{R: 0x98, G: 0x1f, B: 0x52, A: 0xff}, // purple
	{R: 0x2f, G: 0xa0, B: 0xc8, A: 0xff}, // sky
	{R: 0x14, G: 0x70, B: 0x4f, A: 0xff}, // green
	{R: 0xf0, G: 0xc8, B: 0x30, A: 0xff}, // yellow
	{R: 0x12, G: 0x16, B: 0x1c, A: 0xff}, // black
	{R: 0xc8, G: 0x58, B: 0x3a, A: 0xff}, // red
}

// strongColor is the colour of a series that stands out.
const strongColor = 0

// contexts are the colours of the thin series beside a strong series.
var contexts = []color.RGBA{
	{R: 0x55, G: 0x5f, B: 0x6b, A: 0xff},
	{R: 0xc8, G: 0x58, B: 0x3a, A: 0xff},
	{R: 0x14, G: 0x70, B: 0x4f, A: 0xff},
	{R: 0xa9, G: 0x7b, B: 0x00, A: 0xff},
	{R: 0x98, G: 0x1f, B: 0x52, A: 0xff},
}

// strongLine is the line of a strong series, contextLine the line of the i-th other
// series. The ups and downs of many points would run together in a wide line.
func strongLine(points int) draw.LineStyle {
	line := draw.LineStyle{Color: palette[strongColor], Width: 2.8}
	if points > 256 {
		line.Width /= 2
	}
	return line
}

func contextLine(i int) draw.LineStyle {
	return draw.LineStyle{Color: contexts[i%len(contexts)], Width: .9, Dashes: dashes[i/len(contexts)%len(dashes)]}
}

// dashes distinguish series when there are more series than colours.
var dashes = [][]vg.Length{nil, {5, 2}, {2, 2}, {7, 2, 2, 2}}

// glyphs mark the points of series with Marks.
var glyphs = []draw.GlyphDrawer{
	draw.CircleGlyph{},
	draw.BoxGlyph{},
	draw.TriangleGlyph{},
	draw.CrossGlyph{},
	draw.RingGlyph{},
	draw.SquareGlyph{},
	draw.PyramidGlyph{},
	draw.PlusGlyph{},
}

// colorOf returns the colour of series i.
func colorOf(i int) color.RGBA { return palette[i%len(palette)] }

// lineOf returns the line style of series i.
func lineOf(i int) draw.LineStyle {
	return draw.LineStyle{Color: colorOf(i), Width: 1.4, Dashes: dashes[i/len(palette)%len(dashes)]}
}
