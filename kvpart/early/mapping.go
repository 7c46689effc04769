package early

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Shards returns the classes and the mapping of a state in k shards with n threads each,
// as the paper maps them by hand (Section 3.4): class 2i reads shard i, class 2i+1 writes
// it, class 2k reads several shards, and class 2k+1 writes several. Reads of several
// shards are sequential on a thread of each shard: were they concurrent, the writes of all
// shards would need their threads, and wait for each other. k and n are at least 1.
func Shards(k, n int) (*Classes, *Mapping, error) {
	c, err := NewClasses(2*k + 2)
	if err != nil {
		return nil, nil, fmt.Errorf("%d shards: %w", k, err)
	}
	m := &Mapping{Threads: k * n, Of: make([]Assignment, 2*k+2)}
	reads, writes := 2*k, 2*k+1
	for i := range k {
		threads := make([]int, n)
		for j := range threads {
			threads[j] = i*n + j
		}
		m.Of[2*i] = Assignment{Threads: threads}
		m.Of[2*i+1] = Assignment{Sequential: true, Threads: threads}
		m.Of[reads].Threads = append(m.Of[reads].Threads, threads[0])
		m.Of[writes].Threads = append(m.Of[writes].Threads, threads...)
		c.Conflict(2*i, 2*i+1)
		c.Conflict(2*i+1, 2*i+1)
		c.Conflict(reads, 2*i+1)
		c.Conflict(writes, 2*i)
		c.Conflict(writes, 2*i+1)
	}
	c.Conflict(writes, reads)
	c.Conflict(writes, writes)
	m.Of[reads].Sequential, m.Of[writes].Sequential = true, true
	if err := c.Validate(m); err != nil {
		return nil, nil, fmt.Errorf("%d shards of %d threads: %w", k, n, err)
	}
	return c, m, nil
}

// syncCost is the cost of a thread's wait at a sequential request, as a part of the cost
// of running a request, for each other thread of the class.
const syncCost = .25

// load returns the work of the busiest thread under a mapping, in requests for each
// request submitted, and the sum of the squares of all threads' work, to tell equals
// apart. A sequential request holds up all its threads.
func load(m *Mapping, weights []float64) (most, squares float64) {
	work := make([]float64, m.Threads)
	for i, a := range m.Of {
		each := weights[i] / float64(len(a.Threads))
		if a.Sequential {
			each = weights[i] * (1 + syncCost*float64(len(a.Threads)-1))
		}
		for _, t := range a.Threads {
			work[t] += each
		}
	}
	for _, w := range work {
		most = max(most, w)
		squares += w * w
	}
	return most, squares
}

// Map computes a valid mapping of classes to threads for the expected weights of the
// classes, their parts of all requests. It looks for few threads in sequential classes
// and many in concurrent ones, in proportion to the weights: the mapping under which the
// busiest thread has the least work. Map tries local changes from several beginnings: the
// mapping need not be the best. Its errors wrap [ErrMapping].
func (c *Classes) Map(threads int, weights []float64) (*Mapping, error) {
	if threads < 1 || threads > MaxThreads {
		return nil, fmt.Errorf("%w: %d threads, must be in 1 to %d", ErrMapping, threads, MaxThreads)
	}
	if len(weights) != c.Len() {
		return nil, fmt.Errorf("%w: %d weights for %d classes", ErrMapping, len(weights), c.Len())
	}
	total := 0.0
	for i, w := range weights {
		if w < 0 || math.IsNaN(w) || math.IsInf(w, 0) {
			return nil, fmt.Errorf("%w: weight %v of class %d, must be finite and at least 0", ErrMapping, w, i)
		}
		total += w
	}
	parts := make([]float64, len(weights))
	for i, w := range weights {
		if parts[i] = 1 / float64(len(weights)); total > 0 {
			parts[i] = w / total
		}
	}
	s := &solver{Classes: c, threads: threads, weights: parts}
	var best *Mapping
	for _, m := range s.beginnings() {
		s.climb(m)
		if best == nil || s.better(m, best) {
			best = m
		}
	}
	return best, c.Validate(best)
}

// solver looks for a mapping.
type solver struct {
	*Classes
	threads int
	weights []float64
}

func (s *solver) better(a, b *Mapping) bool {
	am, as := load(a, s.weights)
	bm, bs := load(b, s.weights)
	const equal = 1e-12
	return am < bm-equal || am <= bm+equal && as < bs-equal
}

// beginnings are valid mappings to begin from: all classes sequential on one thread, and
// with the heaviest classes concurrent that may be, each on threads of its own or on all
// threads.
func (s *solver) beginnings() []*Mapping {
	var ms []*Mapping
	one := &Mapping{Threads: s.threads, Of: make([]Assignment, s.Len())}
	for i := range one.Of {
		one.Of[i] = Assignment{Sequential: true, Threads: []int{0}}
	}
	ms = append(ms, one)
	heavy := make([]int, s.Len())
	for i := range heavy {
		heavy[i] = i
	}
	slices.SortStableFunc(heavy, func(a, b int) int { return cmp.Compare(s.weights[b], s.weights[a]) })
	for kept := 1; kept <= s.Len(); kept += 1 + kept/8 {
		for _, spread := range []bool{false, true} {
			m := &Mapping{Threads: s.threads, Of: make([]Assignment, s.Len())}
			for i := range m.Of {
				m.Of[i].Sequential = true
			}
			var concurrent []int
			weight := 0.0
			for _, i := range heavy {
				if len(concurrent) < kept && s.mayRunConcurrently(m, i) {
					m.Of[i].Sequential = false
					concurrent = append(concurrent, i)
					weight += s.weights[i]
				}
			}
			upTo, from := 0.0, 0
			for _, i := range concurrent {
				upTo += s.weights[i]
				to := from + 1
				if weight > 0 {
					to = max(to, int(upTo/weight*float64(s.threads)+.5))
				}
				if spread {
					from, to = 0, s.threads
				}
				for ; from < to; from++ {
					add(&m.Of[i], from%s.threads)
				}
			}
			s.repair(m)
			ms = append(ms, m)
		}
	}
	return ms
}

// mayRunConcurrently reports whether rules R2 and R3 let a class be concurrent.
func (s *solver) mayRunConcurrently(m *Mapping, i int) bool {
	for j := range m.Of {
		if s.conflicts[i][j] && (i == j || !m.Of[j].Sequential) {
			return false
		}
	}
	return true
}

func add(a *Assignment, t int) {
	if at, found := slices.BinarySearch(a.Threads, t); !found {
		a.Threads = slices.Insert(a.Threads, at, t)
	}
}

// repair gives classes the threads that rules R1, R4 and R5 ask for.
func (s *solver) repair(m *Mapping) {
	for i := range m.Of {
		if len(m.Of[i].Threads) == 0 && !m.Of[i].Sequential {
			add(&m.Of[i], i%s.threads)
		}
	}
	for i := range m.Of {
		for j := range m.Of {
			if s.conflicts[i][j] && m.Of[i].Sequential && !m.Of[j].Sequential {
				for _, t := range m.Of[j].Threads {
					add(&m.Of[i], t)
				}
			}
		}
	}
	for i := range m.Of {
		if len(m.Of[i].Threads) == 0 {
			add(&m.Of[i], s.idlest(m))
		}
	}
	for i := range m.Of {
		for j := range i {
			if s.conflicts[i][j] && m.Of[i].Sequential && m.Of[j].Sequential && !meet(m.Of[i].Threads, m.Of[j].Threads) {
				o := m.clone()
				add(&o.Of[i], m.Of[j].Threads[0])
				add(&m.Of[j], m.Of[i].Threads[0])
				if s.better(o, m) {
					*m = *o
				}
			}
		}
	}
}

func (s *solver) idlest(m *Mapping) int {
	used := make([]int, s.threads)
	for _, a := range m.Of {
		for _, t := range a.Threads {
			used[t]++
		}
	}
	return slices.Index(used, slices.Min(used))
}

// climb makes the most helpful change, again and again until no change helps: another
// kind of class, or a thread more, or less, or in another thread's place.
func (s *solver) climb(m *Mapping) {
	for {
		var best *Mapping
		try := func(change func(o *Mapping)) {
			o := m.clone()
			change(o)
			s.repair(o)
			if s.better(o, m) && (best == nil || s.better(o, best)) && s.Validate(o) == nil {
				best = o
			}
		}
		for i := range m.Of {
			try(func(o *Mapping) { o.Of[i] = Assignment{Sequential: true} })
			if s.mayRunConcurrently(m, i) {
				try(func(o *Mapping) { o.Of[i].Sequential = false })
			}
			for from := -1; from < s.threads; from++ {
				for to := -1; to < s.threads; to++ {
					if from != to && (from < 0 || slices.Contains(m.Of[i].Threads, from)) {
						try(func(o *Mapping) { shift(&o.Of[i], from, to) })
					}
				}
			}
		}
		if best == nil {
			return
		}
		*m = *best
	}
}

// shift gives a class thread to in the place of thread from; -1 is none.
func shift(a *Assignment, from, to int) {
	if from >= 0 {
		a.Threads = slices.DeleteFunc(a.Threads, func(t int) bool { return t == from })
	}
	if to >= 0 {
		add(a, to)
	}
}

func (m *Mapping) clone() *Mapping {
	o := &Mapping{Threads: m.Threads, Of: slices.Clone(m.Of)}
	for i := range o.Of {
		o.Of[i].Threads = slices.Clone(o.Of[i].Threads)
	}
	return o
}
