package avantan

import (
	"errors"
	"fmt"
	"slices"
)

// A View is the set of sites that decide an instance, its voters: a majority of it,
// whoever is reachable. Each sequence has its own view. Only an instance of the same
// sequence changes the view, for the instances after it. So all ballots of an instance
// count majorities in a single view, and a site knows the view of an instance once it
// has applied the instance before (Lamport, Malkhi and Zhou, "Reconfiguring a State
// Machine", with a pipeline of 1).
//
// The sites are sorted. A View never changes.
type View []SiteID

// Validate reports a View that is not sorted, names a site twice or not at all, or has
// fewer than 1 or more than MaxMembers sites.
func (v View) Validate() error {
	switch {
	case len(v) == 0 || len(v) > MaxMembers:
		return fmt.Errorf("avantan: view of %d sites, must have 1 to %d", len(v), MaxMembers)
	case slices.Contains(v, ""):
		return errors.New("avantan: view with an empty name")
	case !increasing(v, func(s SiteID) SiteID { return s }):
		return errors.New("avantan: a view must be sorted, each site once")
	}
	return nil
}

// quorum is the size of a majority.
func (v View) quorum() int { return len(v)/2 + 1 }

// index returns the position of a voter, or false for any other site.
func (v View) index(site SiteID) (int, bool) { return slices.BinarySearch(v, site) }

// Has reports whether a site is a voter.
func (v View) Has(site SiteID) bool {
	_, has := v.index(site)
	return has
}

// and is the union of two views, and v itself if both are the same.
func (v View) and(w View) View {
	if slices.Equal(v, w) {
		return v
	}
	all := slices.Concat(v, w)
	slices.Sort(all)
	return slices.Compact(all)
}

// reachable is the set of voters thought to be up; this site always is.
func (s *step) reachable() siteSet {
	var set siteSet
	for i, site := range s.view() {
		if site == s.cfg.Self || !s.cfg.lost(site) && (s.cfg.Reachable == nil || s.cfg.Reachable(site)) {
			set.add(i)
		}
	}
	return set
}

// view is the view of the instance that this site can take part in.
func (s *step) view() View { return s.ledger.View() }

// votes reports whether this site takes part in the instance after the last applied.
// Any other site learns decisions only.
func (s *step) votes() bool { return s.view().Has(s.cfg.Self) }

// Distinct reports whether a list names each site once.
func Distinct(sites []SiteID) bool {
	sorted := slices.Sorted(slices.Values(sites))
	return len(slices.Compact(sorted)) == len(sites)
}
