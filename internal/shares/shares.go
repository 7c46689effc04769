package shares

import "slices"

// Share is what one site told of its part of an entity.
type Share struct {
	// Site is its name.
	Site string
	// Round orders the shares of a read: all shares of lower rounds had been
	// answered before this one was asked for.
	Round int
	// Absent: the site knows no such entity. All below is empty.
	Absent bool
	// Generation is the entity's that it tells of.
	Generation uint64
	// Limit and Surplus are those after Applied instances that a majority decides.
	Limit, Surplus int64
	Applied        uint64
	// Owed is by how much the tokens in circulation exceed Limit less Surplus then.
	Owed int64
	// Pledged: the site has a part in the next such instance. Without one it is in
	// no value of it that was decided by then.
	Pledged bool
	// Left, Offered and Net are its books: what may be handed out, what is set
	// aside, and what is out. All may be negative.
	Left, Offered, Net int64
	// Stars are its parts in instances that their members decide.
	Stars []Star
	// Sent and Received are the last transfers to and from other sites.
	Sent, Received []Transfer
}

// Star is a part in an instance decided by its members.
type Star struct {
	Leader  string
	Counter uint64
	// Applied: it was decided, and is in the books.
	Applied bool
}

// Transfer is the last transfer that a site knows of between itself and another.
type Transfer struct {
	// Site is the other one.
	Site string
	// Seq numbers the transfers of the pair in one direction from 1; 0 for none.
	Seq uint64
	// Tokens are those of one that was sent and is not acknowledged; 0 else.
	Tokens int64
}

// Sums are what shares add up to.
type Sums struct {
	// Limit and Surplus are those of the share that has applied most.
	Limit, Surplus int64
	// Available is what is left, less the debts; Acquired is what is out.
	Available, Acquired int64
	// InTransit is all of the limit but the surplus that is neither available nor
	// acquired. Of a consistent cut it is what is set aside and what is under way
	// in transfers.
	InTransit int64
	// Debt is what the share that has applied most owes, and what sites are below
	// zero, as a positive number.
	Debt int64
}

// Cut is what a read has found.
type Cut struct {
	Sums
	// Consistent: every token of the limit is counted exactly once.
	Consistent bool
	// Again are the sites to ask again, in the order of the shares, if the cut is
	// not consistent. They lag behind what the figures of others already contain.
	Again []string
}

// Merge adds up the shares of an entity: one of each member site for a cut that
// may be consistent, or of some, for the sums alone.
func Merge(all []Share) Cut {
	m := merger{all: all, again: make([]bool, len(all))}
	newest := m.newest()
	if newest < 0 {
		return Cut{}
	}
	latest := &all[newest]
	m.generations(latest.Generation)
	m.majority(latest.Applied)
	m.stars()
	flying := m.transfers()
	cut := Cut{Sums: sums(all, latest)}
	accounted := flying
	for i := range all {
		if all[i].Generation == latest.Generation {
			accounted += all[i].Offered
		}
	}
	if !slices.Contains(m.again, true) {
		// What shows in no pair of shares shows in the sum: a move that is in some
		// of the books alone and that nobody remembers any more.
		if cut.Consistent = cut.InTransit == accounted; !cut.Consistent {
			for i := range m.again {
				m.again[i] = true
			}
		}
	}
	for i, again := range m.again {
		if again {
			cut.Again = append(cut.Again, all[i].Site)
		}
	}
	return cut
}

// sums adds up the shares of the generation of latest.
func sums(all []Share, latest *Share) Sums {
	s := Sums{Limit: latest.Limit, Surplus: latest.Surplus, Available: -latest.Owed, Debt: latest.Owed}
	for i := range all {
		sh := &all[i]
		if sh.Generation != latest.Generation {
			continue
		}
		s.Available += sh.Left
		s.Acquired += sh.Net
		s.Debt -= min(0, sh.Left) + min(0, sh.Offered)
	}
	s.InTransit = s.Limit - s.Surplus - s.Available - s.Acquired
	return s
}

type merger struct {
	all []Share
	// again marks the shares to ask for again.
	again []bool
}

// newest is where the share is that has applied most of the last generation,
// or -1.
func (m *merger) newest() int {
	newest := -1
	for i := range m.all {
		sh := &m.all[i]
		if sh.Absent {
			continue
		}
		if newest < 0 || sh.Generation > m.all[newest].Generation ||
			sh.Generation == m.all[newest].Generation && sh.Applied > m.all[newest].Applied {
			newest = i
		}
	}
	return newest
}

// generations asks again whoever tells of an earlier generation. A site that
// knows no such entity has missed its creation, or knows already that it was
// deleted: then the others lag.
func (m *merger) generations(last uint64) {
	absent := slices.ContainsFunc(m.all, func(s Share) bool { return s.Absent })
	for i := range m.all {
		m.again[i] = absent || m.all[i].Generation < last
	}
}

// majority asks again the sites that have not applied all that others have. One
// that has no part in its next instance, and was asked after the others had
// answered, is in none of the values that it has missed: else what it offered
// would still be set aside.
func (m *merger) majority(applied uint64) {
	first, found := 0, false
	for i := range m.all {
		if sh := &m.all[i]; sh.Applied == applied && !m.again[i] && (!found || sh.Round < first) {
			first, found = sh.Round, true
		}
	}
	for i := range m.all {
		if sh := &m.all[i]; sh.Applied < applied && (sh.Pledged || sh.Round <= first) {
			m.again[i] = true
		}
	}
}

// stars asks again the sites that may lack an instance, decided by its members,
// which another has applied: one that has set tokens aside for it, and one that
// does not tell of it and was not asked later.
func (m *merger) stars() {
	for i := range m.all {
		for _, st := range m.all[i].Stars {
			if !st.Applied {
				continue
			}
			for j := range m.all {
				sh := &m.all[j]
				k := slices.IndexFunc(sh.Stars, func(o Star) bool { return o.Leader == st.Leader && o.Counter == st.Counter })
				if k >= 0 && !sh.Stars[k].Applied || k < 0 && sh.Round <= m.all[i].Round {
					m.again[j] = true
				}
			}
		}
	}
}

// transfers asks again whichever side of a pair lags, and returns what is under
// way. A donor sends the next one only after the one before was taken.
func (m *merger) transfers() (flying int64) {
	for d := range m.all {
		for r := range m.all {
			sent, taken := last(m.all[d].Sent, m.all[r].Site), last(m.all[r].Received, m.all[d].Site)
			switch {
			case d == r || sent.Seq == taken.Seq:
			case sent.Seq < taken.Seq:
				m.again[d] = true
			case sent.Seq > taken.Seq+1 || sent.Tokens == 0:
				// An earlier one was taken meanwhile, or this one.
				m.again[r] = true
			default:
				flying += sent.Tokens
			}
		}
	}
	return flying
}

func last(moves []Transfer, site string) Transfer {
	if i := slices.IndexFunc(moves, func(t Transfer) bool { return t.Site == site }); i >= 0 {
		return moves[i]
	}
	return Transfer{}
}
