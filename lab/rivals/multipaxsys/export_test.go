package multipaxsys

import "github.com/samya-db/samya/lab/virtual"

// Waiting is the number of requests that a place's router has.
func (s *System) Waiting(p virtual.Place) int { return len(s.routers[p].calls) }

// Leader is the place of the leader of the newest term, -1 if no leader serves.
func (s *System) Leader() virtual.Place {
	at, term := virtual.Place(-1), uint64(0)
	for _, r := range s.replicas {
		if l := r.lead; l != nil && l.serving && l.term > term {
			at, term = r.place, l.term
		}
	}
	return at
}

// Behind is the number of entries by which the slowest replica is behind.
func (s *System) Behind() uint64 {
	least := s.replicas[0].record.applied
	for _, r := range s.replicas {
		least = min(least, r.record.applied)
	}
	return s.newest().record.applied - least
}
