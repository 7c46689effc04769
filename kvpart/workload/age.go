package workload

// age halves all weights and frees vertices without weight, until n new keys fit and a
// quarter of each bound is free. It takes long, and should be rare.
func (g *Graph) age(n int) {
	for !g.fits(n) || g.taken() > g.opt.Vertices/4*3 || g.edges.count > g.opt.Edges/4*3 {
		g.halve()
	}
}

func (g *Graph) halve() {
	for i := range g.vertices {
		p := &g.vertices[i]
		if p.refs == 0 {
			continue
		}
		p.refs /= 2
		if p.removed {
			p.refs = 0
		}
		p.load[0] /= 2
		p.load[1] /= 2
		if p.refs == 0 {
			g.release(Vertex(i))
		}
	}
	g.edges.halve(func(v Vertex) bool { return g.vertices[v].refs > 0 })
}

// halve halves the weights of pairs with both vertices alive, and drops all others.
func (t *edges) halve(alive func(Vertex) bool) {
	for i := range t.slots {
		e := &t.slots[i]
		if e.pair == 0 {
			continue
		}
		e.weight /= 2
		if !alive(Vertex(e.pair>>32)) || !alive(Vertex(uint32(e.pair))) {
			e.weight = 0
		}
	}
	// Dropping moves later pairs into the gap: look at a slot until its pair stays.
	for i := range t.slots {
		for t.slots[i].pair != 0 && t.slots[i].weight == 0 {
			t.drop(i)
		}
	}
}
