package avantan

import (
	"cmp"
	"math/bits"
)

// siteSet is a set of sites by their position in a View.
type siteSet uint64

func (s *siteSet) add(i int)              { *s |= 1 << i }
func (s *siteSet) remove(i int)           { *s &^= 1 << i }
func (s siteSet) has(i int) bool          { return s&(1<<i) != 0 }
func (s siteSet) len() int                { return bits.OnesCount64(uint64(s)) }
func (s siteSet) covers(all siteSet) bool { return all&^s == 0 }

// increasing reports whether the keys of list are strictly increasing.
func increasing[E any, K cmp.Ordered](list []E, key func(E) K) bool {
	for i := 1; i < len(list); i++ {
		if key(list[i-1]) >= key(list[i]) {
			return false
		}
	}
	return true
}
