package kvpart

import (
	"slices"

	"github.com/samya-db/samya/kvpart/engine"
)

// spend keeps the count of the bytes that the engine of h has written, before it is closed. mu is held.
func (hs *homes) spend(h *home) {
	if n := h.written(); n > 0 {
		hs.spent = slices.Grow(hs.spent, hs.width)[:hs.width]
		hs.spent[h.part%hs.width] += n
	}
}

// written returns the bytes that the engine has written to its disk; 0 in memory.
func (h *home) written() int64 {
	if c, ok := h.engine.(engine.Counter); ok {
		return c.WrittenBytes()
	}
	return 0
}

// written appends to dst[:0] the bytes that the engines of each partition have written to
// disks since the store was opened, former generations included: an element a
// partition with a hard strategy, else a single element. An engine of a former layout counts for the
// partition of its number modulo their present number. No element ever falls.
func (hs *homes) written(dst []int64) []int64 {
	dst = slices.Grow(dst[:0], hs.width)[:hs.width]
	clear(dst)
	hs.mu.Lock()
	defer hs.mu.Unlock()
	copy(dst, hs.spent)
	for _, g := range hs.all {
		for _, h := range g.homes {
			if !h.closed {
				dst[h.part%hs.width] += h.written()
			}
		}
	}
	return dst
}
