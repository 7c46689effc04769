package plot

import (
	"cmp"
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"
)

// Band is a filled band between two lines.
type Band struct {
	Name   string
	Points []Breadth
}

// Breadth is the extent of a band at X.
type Breadth struct{ X, Low, High float64 }

// area returns the filled band: along the upper line, and back along the lower.
func (b *Band) area() *plotter.Polygon {
	ring := make(plotter.XYs, 0, 2*len(b.Points))
	for _, at := range b.Points {
		ring = append(ring, plotter.XY{X: at.X, Y: at.High})
	}
	for _, at := range slices.Backward(b.Points) {
		ring = append(ring, plotter.XY{X: at.X, Y: at.Low})
	}
	return filled(amber, ring)
}

// filled returns an area without an edge.
func filled(c color.Color, ring plotter.XYs) *plotter.Polygon {
	return &plotter.Polygon{XYs: []plotter.XYs{ring}, LineStyle: draw.LineStyle{Color: c}, Color: c}
}

// check refuses a band that the axes of l cannot show, and adds the band's numbers.
func (b *Band) check(l *Lines, of *extent) error {
	if b.Name == "" || len(b.Points) < 2 || len(b.Points) > MaxPoints {
		return fmt.Errorf("%w: %s: band %q of %d points, there must be 2 to %d", ErrFigure, l.Title, b.Name, len(b.Points), MaxPoints)
	}
	for _, at := range b.Points {
		if err := cmp.Or(l.X.check(at.X), l.Y.check(at.Low), l.Y.check(at.High)); err != nil {
			return fmt.Errorf("%s: %w", b.Name, err)
		}
		of.low, of.high = min(of.low, at.Low), max(of.high, at.High)
	}
	return nil
}
