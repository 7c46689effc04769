package core

import "github.com/samya-db/samya/avantan/star"

// view is this site's view of the entity without Moves and Others, which only read adds.
func (e *entity) view() View {
	v := View{
		Name: e.name, Limit: e.limit, Generation: e.generation, Version: e.version,
		Left: e.books.Left(), Offered: e.offered(), Net: e.books.Net(),
		Waiting: e.queue.len(), Applied: e.applied(), Moved: e.moved,
		Fetches: e.fetches, Surplus: e.surplus(), Debt: e.owed(), Usable: e.usable(), Children: int(e.children),
	}
	if d := e.debt(); d != nil {
		v.DebtSince, v.MayExceed = d.since, d.mayExceed()
	}
	if e.parent() != nil {
		v.Parent = e.parent().name
	}
	return v
}

// read is the view with the moves that the books contain, and with the reports of others.
func (c *Core) read(e *entity) View {
	v := e.view()
	v.Moves = e.moves()
	v.Others = c.others(e)
	return v
}

func (e *entity) moves() Moves {
	m := Moves{Pledged: e.majority != nil && e.majority.State().Pledge != nil}
	if e.star != nil {
		m.Stars = starMoves(e.star.State().Slices)
	}
	if e.transfer != nil {
		st := e.transfer.State()
		for _, d := range st.Debits {
			m.Sent = append(m.Sent, TransferMove{Site: d.Receiver, Seq: d.Seq, Tokens: d.Amount})
		}
		for _, d := range st.Credits {
			m.Received = append(m.Received, TransferMove{Site: d.Donor, Seq: d.Seq})
		}
	}
	return m
}

func starMoves(slices []star.Slice) []StarMove {
	moves := make([]StarMove, 0, len(slices))
	for i := range slices {
		s := &slices[i]
		moves = append(moves, StarMove{Leader: s.ID.Leader, Counter: s.ID.Counter, Applied: s.Committed})
	}
	return moves
}

// others are the other members' reports of the entity.
func (c *Core) others(e *entity) []OtherView {
	var others []OtherView
	for i, m := range c.cfg.Members {
		if m == c.cfg.Self {
			continue
		}
		o := OtherView{Site: m, Age: Never}
		if e.views != nil && e.views[i].told != 0 {
			v := &e.views[i]
			o = OtherView{Site: m, Left: v.Left, Offered: v.Offered, Net: v.Net, Age: c.now.Tick - v.told}
		}
		others = append(others, o)
	}
	return others
}

func (c *Core) readEntity(r *Read) {
	c.space.Execute([]string{r.Entity}, func(es []*entity) {
		if es[0] == nil {
			c.reply(r.Call, Answer{Code: NotFound})
			return
		}
		c.reply(r.Call, Answer{Details: &Details{View: c.read(es[0])}})
	})
}
