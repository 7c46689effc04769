package core

import "github.com/samya-db/samya/site/core/keys"

// nanos is a time in nanoseconds.
func nanos(t Tick) int64 { return int64(t) * 1_000_000 } //nolint:gosec // far from overflow

// shareKeys has the keys of a template note the books.
func (r *rate) shareKeys(e *entity, now Tick) {
	share := int64(e.books.Left())
	switch {
	case r.calendar == nil:
		share += int64(e.books.Net())
	case r.restored:
		// Nobody knows which keys had their tokens before the start, also of tokens that were
		// set aside then and come back now.
		share = 0
	}
	switch {
	case r.keys != nil:
		r.keys.Share(nanos(now), share)
	case r.calendar != nil:
		r.keys = keys.NewWindow(share)
	default:
		r.keys = keys.NewBucket(r.Terms.Nanos(), nanos(now), share, !r.restored)
	}
}

// keyCount is the number of keys that need memory.
func (r *rate) keyCount() int {
	if r.keys == nil {
		return 0
	}
	return r.keys.Len()
}
