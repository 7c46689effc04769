package early

import "sync"

// graph is a graph of dependencies (CBASE, Kotla and Dahlin 2004): a request depends on
// all earlier requests of conflicting classes that have not ended.
type graph struct {
	classes *Classes
	bound   int

	mu sync.Mutex
	// room is signalled as a request ends, ready as one becomes free to run.
	room, ready sync.Cond
	// open are the requests that have not ended, in order; free are those to run.
	open   []*node
	free   []*node
	closed bool
}

// node is a request: waits counts the requests that it depends on, and then are the
// requests that depend on it.
type node struct {
	task
	waits int
	then  []*node
}

func newGraph(classes *Classes, bound int) *graph {
	g := &graph{classes: classes, bound: bound}
	g.room.L, g.ready.L = &g.mu, &g.mu
	return g
}

func (g *graph) add(class int, job Job) {
	n := &node{task: task{class: class, job: job}}
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.open) >= g.bound {
		g.room.Wait()
	}
	for _, o := range g.open {
		if g.classes.Conflicts(o.class, class) {
			o.then = append(o.then, n)
			n.waits++
		}
	}
	g.open = append(g.open, n)
	if n.waits == 0 {
		g.free = append(g.free, n)
		g.ready.Signal()
	}
}

// loop is a thread's goroutine.
func (g *graph) loop(thread int, m *machine) {
	ended := false
	defer func() {
		if !ended { // a job ended the goroutine
			m.running.Go(func() { g.loop(thread, m) })
		}
	}()
	for n := g.take(); n != nil; n = g.take() {
		g.run(n, thread, m)
	}
	ended = true
}

// take waits for a request that may run, and takes it. It returns nil once the graph is
// closed and empty.
func (g *graph) take() *node {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.free) == 0 {
		if g.closed && len(g.open) == 0 {
			return nil
		}
		g.ready.Wait()
	}
	n := g.free[0]
	g.free = g.free[1:]
	return n
}

func (g *graph) run(n *node, thread int, m *machine) {
	defer func() { // also if the job ends the goroutine
		m.ran.Add(1)
		g.end(n)
	}()
	n.job.Run(thread)
}

func (g *graph) end(n *node) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, o := range g.open {
		if o == n {
			g.open = append(g.open[:i], g.open[i+1:]...)
			break
		}
	}
	for _, o := range n.then {
		if o.waits--; o.waits == 0 {
			g.free = append(g.free, o)
			g.ready.Signal()
		}
	}
	g.room.Signal()
	if g.closed && len(g.open) == 0 {
		g.ready.Broadcast()
	}
}

func (g *graph) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.ready.Broadcast()
}
