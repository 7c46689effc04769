package partitions

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/samya-db/samya/kvpart/sched"
	"github.com/samya-db/samya/site/core"
)

// A hub is an entity that no map does justice to: it outweighs a partition, or so many
// requests from all partitions need it that most cross to it. It is split instead.

const (
	// lookEvery is how often hubs are looked for, and enough how many requests must
	// have been served since.
	lookEvery = time.Second
	enough    = 2000
	// hubShare is the share of all requests that would not cross if the entity were
	// split, from which on it is; dullShare is below which share of requests a split
	// entity is made whole again, after dullLooks looks in a row.
	hubShare, dullShare = .05, .02
	dullLooks           = 5
	// mostSplit bounds the entities that are split at a time.
	mostSplit = 16
	// sampleOf is of how many crossing requests one is looked at.
	sampleOf = 8
)

// hubs finds the entities to be split.
type hubs struct {
	// skipped counts crossing requests up to the next one looked at.
	skipped atomic.Uint32

	mu sync.Mutex
	// odd counts, of those looked at, by the entity without which they would not have
	// crossed.
	odd map[*entry]uint64
	// served is how many requests there had been at the last look, looked when that
	// was.
	served uint64
	looked time.Duration
	// split has those that the last look found split.
	split map[string]*splitUse
}

// splitUse is what a split entity was used for.
type splitUse struct {
	served uint64
	dull   int
}

// crossed looks at one of several requests that were of several partitions.
func (h *hubs) crossed(entries []*entry, s *sched.Scheduler[core.Place]) {
	if h.skipped.Add(1)%sampleOf != 0 {
		return
	}
	if e := oddOne(entries, func(e *entry) int { return s.Partition(e) }); e != nil {
		h.mu.Lock()
		h.odd[e]++
		h.mu.Unlock()
	}
}

// oddOne is the entry without which all are of one partition; the last if there are
// several, which is the one highest up; nil if there is none.
func oddOne(entries []*entry, partition func(*entry) int) *entry {
	first, other, count, others := partition(entries[0]), -1, 1, 0
	for _, e := range entries[1:] {
		switch at := partition(e); at {
		case first:
			count++
		case other:
			others++
		default:
			if other >= 0 {
				return nil // three partitions
			}
			other, others = at, 1
		}
	}
	var odd int
	switch {
	case others == 1:
		odd = other
	case count == 1:
		odd = first
	default:
		return nil
	}
	for _, e := range slices.Backward(entries) {
		if partition(e) == odd {
			return e
		}
	}
	return nil
}

// due reports whether it is time for another look.
func (h *hubs) due(now time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return now-h.looked >= lookEvery
}

// decide says which entities are to be split and which to be made whole, by what was
// seen since the last look. heavy are those that outweigh a partition, by the last map;
// mapped says that there is one: before, most requests cross by chance.
func (h *hubs) decide(now time.Duration, served uint64, splits []core.SplitState, heavy []string, mapped bool) (split, whole []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := served - h.served
	if now-h.looked < lookEvery || n < enough {
		return nil, nil
	}
	h.served, h.looked = served, now
	room := mostSplit - len(splits)
	still := make(map[string]*splitUse, len(splits))
	for _, s := range splits {
		use := h.split[s.Name]
		if use == nil {
			use = new(splitUse)
		}
		if float64(s.Served-use.served) < dullShare*float64(n) {
			use.dull++
		} else {
			use.dull = 0
		}
		use.served = s.Served
		still[s.Name] = use
		if use.dull >= dullLooks {
			whole = append(whole, s.Name)
		}
	}
	h.split = still
	add := func(name string) {
		if room > 0 && still[name] == nil && !slices.Contains(split, name) {
			room--
			split = append(split, name)
		}
	}
	if mapped {
		for e, count := range h.odd {
			if float64(count*sampleOf) >= hubShare*float64(n) {
				add(e.Key())
			}
		}
		for _, name := range heavy {
			add(name)
		}
	}
	clear(h.odd)
	slices.Sort(split)
	return split, whole
}
