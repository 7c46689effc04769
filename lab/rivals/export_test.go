package rivals

import "github.com/samya-db/samya/lab/virtual"

// OutAt is the number of tokens that the clients of a place hold.
func (s *sites) OutAt(p virtual.Place) int { return s.at[p].net }
