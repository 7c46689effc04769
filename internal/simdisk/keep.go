package simdisk

import "math/rand/v2"

// keeping decides which unsynced changes survive.
type keeping struct {
	style style
	r     *rand.Rand
	// thousandths is the probability of each sector and name to be kept, in style some.
	// In style first it is the share of the first changes that are kept.
	thousandths int
}

type style uint8

const (
	// nothing survives: no write had left the system's memory.
	nothing style = iota
	// everything survives.
	everything
	// some survives: each sector and each name may survive by itself.
	some
	// first survives: the first changes do.
	first
)

// drawn has each style as often as it is drawn.
var drawn = [...]style{nothing, everything, some, some, some, first}

func (d *Disk) draw() keeping {
	return keeping{style: drawn[d.r.IntN(len(drawn))], r: d.r, thousandths: d.r.IntN(1001)}
}

// sector returns which of its states a sector has; state 0 is the synced content.
func (k keeping) sector(i, n, states int) int {
	switch k.style {
	case everything:
		return states - 1
	case some:
		if k.r.IntN(1000) < k.thousandths {
			return k.r.IntN(states)
		}
	case first:
		switch last := n * k.thousandths / 1000; {
		case i < last:
			return states - 1
		case i == last:
			return k.r.IntN(states)
		}
	case nothing:
	}
	return 0
}

// size returns the size of a file.
func (k keeping) size(sizes []int) int {
	switch k.style {
	case everything:
		return sizes[len(sizes)-1]
	case some, first:
		a, b := sizes[k.r.IntN(len(sizes))], sizes[len(sizes)-1]
		if k.r.IntN(2) == 0 {
			return a
		}
		// A file grows sector by sector.
		low, high := min(a, b), max(a, b)
		return min(high, low+Sector*k.r.IntN((high-low)/Sector+1))
	case nothing:
	}
	return sizes[0]
}

// name reports whether a change of a name is durable.
func (k keeping) name(i, n int) bool {
	switch k.style {
	case everything:
		return true
	case some:
		return k.r.IntN(1000) < k.thousandths
	case first:
		return i < n*k.thousandths/1000
	case nothing:
	}
	return false
}
