// Package portion divides a bound among its holders, such as the tenants of a site or the
// callers of an app manager. A holder that takes all it can get must leave room for the
// other holders. It counts and decides, and does not know the things counted. It takes no
// lock: its caller does.
package portion

import "maps"

// lastPart is the part of a bound that is kept for holders that have little: the last
// eighth.
const lastPart = 8

// Fits reports whether a holder may take n more of a bound. Up to the last eighth of the
// bound, every holder may. From then on, a holder may if it has less than an equal part
// of the bound. A part is left for the next new holder. No holder gets beyond the bound.
// all is the amount taken of the bound, mine the holder's part of all, and others the
// number of other holders.
func Fits(bound, all, mine, others, n int) bool {
	switch {
	case n > bound-all:
		return false
	case n <= bound-bound/lastPart-all:
		return true
	}
	return mine < equal(bound, others)
}

// equal returns an equal part of a bound for a holder, beside others and the next new
// holder; at least 1.
func equal(bound, others int) int { return max(1, bound/(others+2)) }

// Slot is a holder's place in Counts while the holder has something. Slots are used
// again.
type Slot uint32

// Nobody is the slot of amounts counted for no holder.
const Nobody Slot = 0

// Counts counts how much each holder has. A holder that has nothing takes no memory. The
// zero value is ready to use.
type Counts struct {
	// slots begins with the unused slot of Nobody.
	slots []slot
	// at finds the slots of the holders that have something.
	at map[string]Slot
	// free are the slots without a holder, and some that no longer exist.
	free []Slot
	// all is the amount of all holders, Nobody included.
	all int
	// peak is the highest number of holders since memory was last given back.
	peak int
}

// slot is a holder's slot; held is 0 in a free slot.
type slot struct {
	name string
	held int
}

// fewHolders: the memory of so few holders is not worth giving back.
const fewHolders = 64

// All returns the amount of all holders, Nobody included.
func (c *Counts) All() int { return c.all }

// Holders returns the number of holders that have something.
func (c *Counts) Holders() int { return len(c.at) }

// Held returns the amount of a holder.
func (c *Counts) Held(name string) int {
	at, ok := c.at[name]
	if !ok {
		return 0
	}
	return c.slots[at].held
}

// Name returns the name of the holder of a slot in use; empty for Nobody.
func (c *Counts) Name(at Slot) string {
	if at == Nobody {
		return ""
	}
	return c.slots[at].name
}

// Fits reports whether a holder may take n more of a bound on the amount of all.
func (c *Counts) Fits(name string, bound, n int) bool {
	if n <= bound-bound/lastPart-c.all {
		return true
	}
	mine, others := 0, len(c.at)
	if at, ok := c.at[name]; ok {
		mine = c.slots[at].held
		others--
	}
	return Fits(bound, c.all, mine, others, n)
}

// Take counts n more for a holder, at least 1, and returns the holder's slot.
func (c *Counts) Take(name string, n int) Slot {
	at, ok := c.at[name]
	if !ok {
		at = c.come(name)
	}
	c.slots[at].held += n
	c.all += n
	return at
}

// More counts n more in a slot in use, or for Nobody.
func (c *Counts) More(at Slot, n int) {
	if at != Nobody {
		c.slots[at].held += n
	}
	c.all += n
}

// Give counts n less in a slot.
func (c *Counts) Give(at Slot, n int) {
	c.all -= n
	if at == Nobody {
		return
	}
	s := &c.slots[at]
	if s.held -= n; s.held > 0 {
		return
	}
	delete(c.at, s.name)
	*s = slot{}
	c.vacate(at)
}

// vacant returns a free slot.
func (c *Counts) vacant() Slot {
	for n := len(c.free); n > 0; n = len(c.free) {
		at := c.free[n-1]
		if c.free = c.free[:n-1]; int(at) < len(c.slots) {
			return at
		}
	}
	c.slots = append(c.slots, slot{})
	return Slot(len(c.slots) - 1) //nolint:gosec // far fewer
}

// vacate frees a slot, and gives memory back that maps and slices would keep. A slot in
// use stays where it is.
func (c *Counts) vacate(at Slot) {
	if last := len(c.slots) - 1; int(at) < last {
		c.free = append(c.free, at)
	} else {
		for last > 1 && c.slots[last-1].held == 0 {
			last--
		}
		c.slots = c.slots[:last]
		if room := cap(c.slots); room > fewHolders && last < room/4 {
			c.slots = append(make([]slot, 0, 2*last), c.slots...)
		}
	}
	if n := len(c.free); n > fewHolders && n > len(c.slots) {
		old := c.free
		c.free = nil
		for _, at := range old {
			if int(at) < len(c.slots) {
				c.free = append(c.free, at)
			}
		}
	}
	if c.peak > fewHolders && len(c.at) < c.peak/4 {
		c.at = maps.Collect(maps.All(c.at))
		c.peak = len(c.at)
	}
}

// come gives a holder a slot.
func (c *Counts) come(name string) Slot {
	if c.at == nil {
		c.at = make(map[string]Slot)
	}
	if len(c.slots) == 0 {
		c.slots = append(c.slots, slot{})
	}
	at := c.vacant()
	c.slots[at].name = name
	c.at[name] = at
	c.peak = max(c.peak, len(c.at))
	return at
}
