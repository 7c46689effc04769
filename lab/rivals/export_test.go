package rivals

import "github.com/samya-db/samya/lab/virtual"

// OutAt is what the clients of a place hold.
func (s *sites) OutAt(p virtual.Place) int { return s.at[p].net }
