package journal

import (
	"bytes"
	"maps"
	"slices"
	"strings"
)

// overlay holds the last operation on each key within a part of the log, and the place
// of its value. It lies over the base until it is written to the base.
type overlay struct {
	buckets map[Bucket]*layer
	// entries counts the entries of all buckets, dead entries included.
	entries int
}

// layer is an overlay of one bucket.
type layer struct {
	// below is the highest key of a DeleteBelow; empty for none.
	below []byte
	// dead, if pending, is the key below which entries are deleted. sweep takes them
	// out once there are enough.
	dead    []byte
	pending bool
	// swept is the number of entries after the last sweep.
	swept   int
	index   map[string]int
	entries []entry
}

// entry is a Put whose value stands in a segment, or a Delete.
type entry struct {
	key     string
	kind    Kind
	length  uint32
	segment int32
	at      int64
}

func newOverlay() *overlay { return &overlay{buckets: make(map[Bucket]*layer)} }

// add takes up an operation. Its value stands at offset at of the segment.
func (o *overlay) add(op Op, segment int, at int64) {
	l := o.buckets[op.Bucket]
	if l == nil {
		l = &layer{index: make(map[string]int)}
		o.buckets[op.Bucket] = l
	}
	before := len(l.entries)
	if op.Kind == DeleteBelow {
		l.deleteBelow(op.Key)
	} else {
		l.set(op, segment, at)
	}
	o.entries += len(l.entries) - before
}

func (l *layer) set(op Op, segment int, at int64) {
	if l.pending && bytes.Compare(op.Key, l.dead) < 0 {
		// The entry comes after the deletion, and stays.
		l.sweep()
	}
	i, found := l.index[string(op.Key)]
	if !found {
		i = len(l.entries)
		l.entries = append(l.entries, entry{key: string(op.Key)})
		l.index[l.entries[i].key] = i
	}
	e := &l.entries[i]
	e.kind, e.length, e.segment, e.at = op.Kind, uint32(len(op.Value)), int32(segment), at
}

// sweepAtLeast is the least number of new entries worth a sweep.
const sweepAtLeast = 1024

func (l *layer) deleteBelow(key []byte) {
	if bytes.Compare(key, l.below) > 0 {
		l.below = append(l.below[:0], key...)
	}
	if !l.pending || bytes.Compare(key, l.dead) > 0 {
		l.dead, l.pending = append(l.dead[:0], key...), true
	}
	if len(l.entries) > 2*l.swept+sweepAtLeast {
		l.sweep()
	}
}

// sweep takes out dead entries.
func (l *layer) sweep() {
	kept := l.entries[:0]
	for _, e := range l.entries {
		if strings.Compare(e.key, string(l.dead)) < 0 {
			delete(l.index, e.key)
			continue
		}
		l.index[e.key] = len(kept)
		kept = append(kept, e)
	}
	clear(l.entries[len(kept):])
	l.entries, l.swept, l.pending = kept, len(kept), false
}

// operations returns the operations for the base: in each bucket the DeleteBelow first,
// and then the entries by key.
func (o *overlay) operations() []pending {
	most := 0
	for _, l := range o.buckets {
		most += 1 + len(l.entries)
	}
	all := make([]pending, 0, most)
	for _, b := range slices.Sorted(maps.Keys(o.buckets)) {
		l := o.buckets[b]
		if l.pending {
			l.sweep()
		}
		if len(l.below) > 0 {
			all = append(all, pending{bucket: b, entry: entry{kind: DeleteBelow, key: string(l.below)}})
		}
		slices.SortFunc(l.entries, func(x, y entry) int { return strings.Compare(x.key, y.key) })
		for _, e := range l.entries {
			all = append(all, pending{b, e})
		}
	}
	return all
}

// pending is an operation for the base.
type pending struct {
	bucket Bucket
	entry
}
