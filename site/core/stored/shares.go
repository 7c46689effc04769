package stored

import "github.com/samya-db/samya/avantan"

// Ended are tokens of leases of share that have ended. They come back two windows after the
// window in which their lease ended, see opensAfter.
type Ended struct {
	// In is the window in which the last lease ended, and Last are the tokens of the leases
	// that ended in it. Before are tokens of leases that ended in the window before, or earlier
	// and have not come back. Each is 0 for none.
	In           int64
	Last, Before avantan.Tokens
}

// opensAfter is the number of windows after which tokens of a lease of share come back: the clock
// of the holder may be ahead by a window.
const opensAfter = 2

// Out is the number of the tokens that have not come back in a window.
func (e *Ended) Out(window int64) avantan.Tokens {
	switch {
	case window >= e.In+opensAfter:
		return 0
	case window == e.In+opensAfter-1:
		return e.Last
	}
	return e.Last + e.Before
}

// Until is the window in which all of the tokens have come back; 0 for none.
func (e *Ended) Until() int64 {
	switch {
	case e.Last > 0:
		return e.In + opensAfter
	case e.Before > 0:
		return e.In + opensAfter - 1
	}
	return 0
}

// Begin forgets tokens that have come back in a window.
func (e *Ended) Begin(window int64) {
	switch {
	case window >= e.In+opensAfter:
		*e = Ended{}
	case window == e.In+opensAfter-1:
		e.Before = 0
	}
}

// Add notes tokens of a lease that ends in a window.
func (e *Ended) Add(window int64, tokens avantan.Tokens) {
	if window > e.In {
		// Tokens that should have come back by now do so a little later.
		e.In, e.Last, e.Before = window, 0, e.Last+e.Before
	}
	e.Last += tokens
}

// valid reports whether all numbers are in range.
func (e *Ended) valid() bool { return e.In >= 0 && e.Last >= 0 && e.Before >= 0 }
