package core

import (
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/site/core/answer"
)

// view is this site's view of the entity without Moves and Others, which only read adds.
func (e *entity) view() answer.View {
	v := answer.View{
		Name: e.name, Limit: e.limit, Generation: e.generation, Version: e.version,
		Left: e.books.Left(), Offered: e.offered(), Net: e.books.Net(),
		Waiting: e.queue.len(), Applied: e.applied(), Moved: e.moved,
		Fetches: e.fetches, Surplus: e.surplus(), WrittenOff: e.writtenOff(), Debt: e.owed(), Usable: e.usable(), Children: int(e.children),
	}
	if d := e.debt(); d != nil {
		v.DebtSince, v.MayExceed = d.since, d.mayExceed()
	}
	if e.parent() != nil {
		v.Parent = e.parent().name
	}
	if rateOf(e) != nil {
		v.Rate, v.Ends = rateOf(e).Terms, rateOf(e).ends
	}
	return v
}

// addUp adds an entity to the sums of a list.
func addUp(s *answer.Sum, e *entity) {
	s.Entities++
	s.Waiting += e.queue.len()
	if e.parent() != nil || rateOf(e) != nil {
		return
	}
	s.Left += e.books.Left()
	s.Net += e.books.Net()
	s.Offered += e.offered()
}

// read is the view with the moves that the books contain, and with the reports of others.
func (c *reading) read(e *entity) answer.View {
	v := e.view()
	v.Moves, v.Members = e.moves(), uint64(c.roster.Version)
	v.Others = c.peering.others(e)
	return v
}

func (e *entity) moves() answer.Moves {
	m := answer.Moves{Pledged: e.majority != nil && e.majority.State().Pledge != nil}
	if e.star != nil {
		m.Stars = starMoves(e.star.State().Slices)
	}
	if e.transfer != nil {
		st := e.transfer.State()
		for _, d := range st.Debits {
			m.Sent = append(m.Sent, answer.TransferMove{Site: d.Receiver, Seq: d.Seq, Tokens: d.Amount})
		}
		for _, d := range st.Credits {
			m.Received = append(m.Received, answer.TransferMove{Site: d.Donor, Seq: d.Seq})
		}
	}
	if h := e.handoff(); h != nil {
		st := h.State()
		for _, g := range st.Given {
			move := answer.TransferMove{Site: g.Heir, Seq: g.Number}
			if st.Open != nil && st.Open.Heir == g.Heir {
				move.Tokens = 1
			}
			m.Handed = append(m.Handed, move)
		}
		for _, t := range st.Taken {
			m.Inherited = append(m.Inherited, answer.TransferMove{Site: t.Leaver, Seq: t.Number})
		}
	}
	return m
}

func starMoves(slices []star.Slice) []answer.StarMove {
	moves := make([]answer.StarMove, 0, len(slices))
	for i := range slices {
		s := &slices[i]
		moves = append(moves, answer.StarMove{Leader: s.ID.Leader, Counter: s.ID.Counter, Applied: s.Committed})
	}
	return moves
}
