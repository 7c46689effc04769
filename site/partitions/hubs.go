package partitions

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/samya-db/samya/kvpart/sched"
	"github.com/samya-db/samya/site/core"
)

// A hub is an entity that no map does justice to. It outweighs a partition, or so many
// requests from all partitions need it that most of them cross to it. It is split
// instead.

const (
	// lookEvery is the time between two looks for hubs, and enough the least number of
	// requests served since.
	lookEvery = time.Second
	enough    = 2000
	// hubShare is the least share of all requests that would not cross if the entity
	// were split: from this share on it is split. Below the share dullShare of
	// requests, in dullLooks looks in a row, a split entity is made whole again.
	hubShare, dullShare = .05, .02
	dullLooks           = 5
	// mostSplit bounds the entities that are split at a time.
	mostSplit = 16
	// sampleOf: every sampleOf-th crossing request is looked at.
	sampleOf = 8
)

// hubs finds the entities to be split.
type hubs struct {
	// skipped counts crossing requests, to look at every sampleOf-th.
	skipped atomic.Uint32

	mu sync.Mutex
	// odd counts sampled requests by the entity without which the request would not
	// have crossed.
	odd map[*entry]uint64
	// served is the number of requests at the last look, looked the time of that look.
	served uint64
	looked time.Duration
	// split has the entities that the last look found split.
	split map[string]*splitUse
}

// splitUse is the use of a split entity.
type splitUse struct {
	served uint64
	dull   int
}

// crossed looks at every sampleOf-th request of several partitions.
func (h *hubs) crossed(entries []*entry, s *sched.Scheduler[core.Handle]) {
	if h.skipped.Add(1)%sampleOf != 0 {
		return
	}
	if e := oddOne(entries, func(e *entry) int { return s.Partition(e) }); e != nil {
		h.mu.Lock()
		h.odd[e]++
		h.mu.Unlock()
	}
}

// oddOne returns the entry without which all entries are of a single partition. If
// there are several, it returns the last, which is highest up in the tree; if there is
// none, nil.
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

// decide returns the entities to split and the entities to make whole, by the requests
// since the last look. heavy are the entities that outweigh a partition, by the last
// map. mapped says that there is a map: before, most requests cross by chance.
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
