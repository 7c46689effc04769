package keys

import "hash/fnv"

// homeShare is the number of tokens below which equal shares of a template are too small to
// be of use.
const homeShare = 8

// Home is the site that has all tokens of a template of a limit, if equal shares were too
// small; else empty. It depends on the template's name and the sites alone (rendezvous
// hashing): the homes of templates are spread over the sites.
func Home[S ~string](template string, limit int64, sites []S) (home S) {
	if limit >= homeShare*int64(len(sites)) {
		return ""
	}
	highest := uint64(0)
	for _, s := range sites {
		h := fnv.New64a()
		_, _ = h.Write([]byte(template + "\x00" + string(s)))
		// The last bytes barely reach the upper bits: spread them.
		if sum := (h.Sum64() ^ h.Sum64()>>29) * 0x9e3779b97f4a7c15; home == "" || sum > highest {
			home, highest = s, sum
		}
	}
	return home
}
