package early

import "testing"

// TestDependsOnAll: a request runs once all earlier requests that conflict have ended,
// whatever their order.
func TestDependsOnAll(t *testing.T) {
	c, err := NewClasses(3)
	if err != nil {
		t.Fatal(err)
	}
	c.Conflict(0, 2)
	c.Conflict(1, 2)
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		g := newGraph(c, 10)
		for class := range 3 {
			g.add(class, mark(class))
		}
		nodes := append([]*node(nil), g.open...)
		if len(g.free) != 2 || nodes[2].waits != 2 {
			t.Fatalf("%d requests are free, the last waits for %d", len(g.free), nodes[2].waits)
		}
		g.free = nil
		if g.end(nodes[order[0]]); len(g.free) != 0 {
			t.Errorf("the last is free after the end of %d alone", order[0])
		}
		if g.end(nodes[order[1]]); len(g.free) != 1 || g.free[0] != nodes[2] || len(g.open) != 1 {
			t.Errorf("%d requests are free after both, %d open", len(g.free), len(g.open))
		}
	}
}
