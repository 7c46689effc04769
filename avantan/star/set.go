package star

// siteSet is a set of members by their position in Config.Members.
type siteSet uint64

func (s *siteSet) add(i int)              { *s |= 1 << i }
func (s siteSet) has(i int) bool          { return s&(1<<i) != 0 }
func (s siteSet) covers(all siteSet) bool { return all&^s == 0 }

// increasing reports whether the list is strictly increasing.
func increasing[E any](list []E, compare func(a, b *E) int) bool {
	for i := 1; i < len(list); i++ {
		if compare(&list[i-1], &list[i]) >= 0 {
			return false
		}
	}
	return true
}
