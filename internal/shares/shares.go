package shares

import "slices"

// Share is a site's part of an entity, as the site told it.
type Share struct {
	// Site is the site's name.
	Site string
	// Round orders the shares of a read: all shares of lower rounds were answered before
	// this share was asked for.
	Round int
	// Absent: the site knows no such entity. All fields below are empty.
	Absent bool
	// Generation is the generation of the site's entity.
	Generation uint64
	// Limit, Surplus and WrittenOff are the values after Applied instances decided by a
	// majority.
	Limit, Surplus, WrittenOff int64
	Applied                    uint64
	// Owed is by how much the tokens in circulation then exceed Limit less Surplus and
	// WrittenOff.
	Owed int64
	// Pledged: the site has a part in the next such instance. Without such a part, the
	// site is in no value of the instance that was decided by then.
	Pledged bool
	// Left, Offered and Net are the site's books: the tokens it may hand out, the tokens
	// set aside, and the tokens out. All may be negative.
	Left, Offered, Net int64
	// Stars are its parts in instances decided by their members.
	Stars []Star
	// Sent and Received are the last transfers to and from other sites.
	Sent, Received []Transfer
	// Handed and Inherited are the last bequests to and from other sites: a site that
	// leaves hands over its books. Tokens are 1 for a bequest that is not acknowledged.
	Handed, Inherited []Transfer
}

// Star is a part in an instance decided by its members.
type Star struct {
	Leader  string
	Counter uint64
	// Applied: the instance was decided, and is in the books.
	Applied bool
}

// Transfer is the last transfer that a site knows of between itself and another.
type Transfer struct {
	// Site is the other site.
	Site string
	// Seq numbers the transfers of the pair in one direction from 1; 0 for none.
	Seq uint64
	// Tokens are the tokens of a transfer that was sent and is not acknowledged; 0
	// otherwise.
	Tokens int64
}

// Sums are the sums of shares.
type Sums struct {
	// Limit, Surplus and WrittenOff are taken from the share that has applied most.
	Limit, Surplus, WrittenOff int64
	// Available is the tokens left, less Owed; Acquired is the tokens out.
	Available, Acquired int64
	// InTransit is the limit less surplus, written-off, available and acquired tokens. In a
	// consistent cut it is the tokens set aside and the tokens under way in transfers.
	InTransit int64
	// Debt is Owed of the share that has applied most, plus the amounts by which sites
	// are below zero.
	Debt int64
}

// Cut is the result of a read.
type Cut struct {
	Sums
	// Consistent: every token of the limit is counted exactly once.
	Consistent bool
	// Again are the sites to ask again, in the order of the shares, if the cut is not
	// consistent. These sites lag behind the figures of other sites.
	Again []string
}

// Merge adds up the shares of an entity. all has a share of each member site for a cut
// that may be consistent, or of some sites, for the sums alone.
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
	m.handoffs()
	cut := Cut{Sums: sums(all, latest)}
	accounted := flying
	for i := range all {
		if all[i].Generation == latest.Generation {
			accounted += all[i].Offered
		}
	}
	if !slices.Contains(m.again, true) {
		// The sum shows an error that no pair of shares shows: a move in only some of its
		// books that no site remembers any more.
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
	s := Sums{Limit: latest.Limit, Surplus: latest.Surplus, WrittenOff: latest.WrittenOff, Available: -latest.Owed, Debt: latest.Owed}
	for i := range all {
		sh := &all[i]
		if sh.Generation != latest.Generation {
			continue
		}
		s.Available += sh.Left
		s.Acquired += sh.Net
		s.Debt -= min(0, sh.Left) + min(0, sh.Offered)
	}
	s.InTransit = s.Limit - s.Surplus - s.WrittenOff - s.Available - s.Acquired
	return s
}

type merger struct {
	all []Share
	// again marks the shares to ask for again.
	again []bool
}

// newest returns the index of the share of the last generation that has applied most, or
// -1.
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

// generations asks every site of an earlier generation again. A site that knows no such
// entity has missed its creation, or knows already of its deletion; then the other sites
// lag.
func (m *merger) generations(last uint64) {
	absent := slices.ContainsFunc(m.all, func(s Share) bool { return s.Absent })
	for i := range m.all {
		m.again[i] = absent || m.all[i].Generation < last
	}
}

// majority asks the sites again that have applied fewer instances than other sites. It
// leaves a lagging site out if the site has no part in its next instance and was asked
// after the other sites had answered. Such a site is in none of the values that it has
// missed; otherwise its offer would still be set aside.
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

// stars asks the sites again that may lack an instance, decided by its members, that
// another site has applied. Such a site has set tokens aside for the instance, or does
// not tell of the instance and was not asked later.
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

// transfers asks the lagging side of each pair again, and returns the tokens under way. A
// donor sends its next transfer only after the last was taken.
func (m *merger) transfers() (flying int64) {
	for d := range m.all {
		for r := range m.all {
			sent, taken := last(m.all[d].Sent, m.all[r].Site), last(m.all[r].Received, m.all[d].Site)
			switch {
			case d == r || sent.Seq == taken.Seq:
			case sent.Seq < taken.Seq:
				m.again[d] = true
			case sent.Seq > taken.Seq+1 || sent.Tokens == 0:
				// Meanwhile an earlier transfer was taken, or this last transfer.
				m.again[r] = true
			default:
				flying += sent.Tokens
			}
		}
	}
	return flying
}

// handoffs asks the lagging side of each bequest again. Both sides count the tokens out of
// a bequest that was taken and is not acknowledged.
func (m *merger) handoffs() {
	for l := range m.all {
		for h := range m.all {
			handed, taken := last(m.all[l].Handed, m.all[h].Site), last(m.all[h].Inherited, m.all[l].Site)
			if l != h && (handed.Seq < taken.Seq || handed.Tokens > 0) {
				m.again[l] = true
			}
			if l != h && handed.Seq > taken.Seq {
				m.again[h] = true
			}
		}
	}
}

func last(moves []Transfer, site string) Transfer {
	if i := slices.IndexFunc(moves, func(t Transfer) bool { return t.Site == site }); i >= 0 {
		return moves[i]
	}
	return Transfer{}
}
