package shares_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/samya-db/samya/internal/shares"
)

// history is a cluster of sites that move tokens as the protocols do, reduced to the
// contents of their books. Each move is of a power of three. So no sum of other moves
// makes up for a move counted twice or not at all.
type history struct {
	t     *rapid.T
	sites []*site
	// instances decided by a majority, in their order, and by their members.
	instances, stars []*instance
	power            int64
	limits           []int64
}

type site struct {
	name      string
	left, net int64
	// pledged is the next majority instance, if the site has a part in it.
	pledged *instance
	applied int
	stars   []*part
	out, in map[string]*shares.Transfer
	// has maps the moves that the books contain to their changes.
	has map[string]int64
}

type part struct {
	of      *instance
	applied bool
}

// instance takes tokens from the first of its members and gives them to the last.
type instance struct {
	name    string
	counter uint64
	members []*site
	pledges int
	decided bool
	applies int
	tokens  int64
	// raise is the raise of the limit, in favour of the last member.
	raise int64
}

const initial = int64(1) << 50

func newHistory(t *rapid.T) *history {
	h := &history{t: t, power: 1}
	n := rapid.IntRange(2, 4).Draw(t, "sites")
	for i := range n {
		h.sites = append(h.sites, &site{
			name: string(rune('a' + i)), left: initial,
			out: map[string]*shares.Transfer{}, in: map[string]*shares.Transfer{}, has: map[string]int64{},
		})
	}
	h.limits = []int64{initial * int64(n)}
	return h
}

func (h *history) pick(what string) *site { return rapid.SampledFrom(h.sites).Draw(h.t, what) }

func (h *history) amount() int64 {
	h.power *= 3
	return h.power
}

// step lets a drawn event happen, unless the event is impossible.
func (h *history) step() {
	s := h.pick("site")
	switch rapid.IntRange(0, 11).Draw(h.t, "what") {
	case 0:
		s.left, s.net = s.left-7, s.net+7
	case 1:
		s.left, s.net = s.left+5, s.net-5
	case 2:
		h.send(s, h.pick("receiver"))
	case 3, 4:
		h.take(s, h.pick("donor"))
	case 5:
		h.acknowledge(s, h.pick("receiver"))
	case 6:
		if h.power < 1<<45 {
			h.begin(s, h.pick("last"))
		}
	case 7, 8:
		h.joinMajority(s)
	case 9:
		h.applyMajority(s)
	case 10:
		h.joinStars(s)
	case 11:
		h.applyStars(s)
	}
}

func (h *history) send(d, r *site) {
	if d == r || h.power >= 1<<45 {
		return
	}
	if d.out[r.name] == nil {
		d.out[r.name] = &shares.Transfer{Site: r.name}
	}
	o := d.out[r.name]
	if o.Tokens > 0 {
		return
	}
	o.Seq, o.Tokens = o.Seq+1, h.amount()
	d.move(fmt.Sprintf("%s%s%d", d.name, r.name, o.Seq), -o.Tokens)
}

func (h *history) take(r, d *site) {
	o := d.out[r.name]
	if o == nil || o.Tokens == 0 || r.in[d.name] != nil && r.in[d.name].Seq == o.Seq {
		return
	}
	r.in[d.name] = &shares.Transfer{Site: d.name, Seq: o.Seq}
	r.move(fmt.Sprintf("%s%s%d", d.name, r.name, o.Seq), o.Tokens)
}

func (h *history) acknowledge(d, r *site) {
	if o := d.out[r.name]; o != nil && r.in[d.name] != nil && r.in[d.name].Seq == o.Seq {
		o.Tokens = 0
	}
}

func (s *site) move(name string, by int64) {
	s.left += by
	s.has[name] += by
}

func (h *history) begin(first, last *site) {
	if first == last {
		return
	}
	x := &instance{members: []*site{first, last}, tokens: h.amount()}
	if rapid.Bool().Draw(h.t, "star") {
		x.counter = uint64(len(h.stars) + 1)
		x.name = fmt.Sprint("star", x.counter)
		h.stars = append(h.stars, x)
		return
	}
	if len(h.instances) > 0 && !h.instances[len(h.instances)-1].decided {
		return
	}
	x.counter = uint64(len(h.instances) + 1)
	x.name = fmt.Sprint("majority", x.counter)
	if rapid.Bool().Draw(h.t, "raise") {
		x.raise = h.amount()
	}
	h.instances = append(h.instances, x)
	h.limits = append(h.limits, h.limits[len(h.limits)-1]+x.raise)
}

// joinMajority makes a site pledge to the instance that is not decided yet. A site that
// has not applied the instance before cannot pledge. A site that is no member may pledge
// as well, and is left out.
func (h *history) joinMajority(s *site) {
	if len(h.instances) == 0 {
		return
	}
	x := h.instances[len(h.instances)-1]
	if x.decided || s.pledged != nil || s.applied != len(h.instances)-1 {
		return
	}
	s.pledged = x
	if slices.Contains(x.members, s) {
		x.pledges++
		x.decided = x.pledges == len(x.members)
	}
}

func (h *history) applyMajority(s *site) {
	if s.applied == len(h.instances) || !h.instances[s.applied].decided {
		return
	}
	x := h.instances[s.applied]
	s.applied++
	s.pledged = nil
	x.apply(s)
}

func (x *instance) apply(s *site) {
	switch s {
	case x.members[0]:
		s.move(x.name, -x.tokens)
	case x.members[1]:
		s.move(x.name, x.tokens+x.raise)
	}
}

func (h *history) joinStars(s *site) {
	for _, x := range h.stars {
		if !x.decided && slices.Contains(x.members, s) && !slices.ContainsFunc(s.stars, func(p *part) bool { return p.of == x }) {
			s.stars = append(s.stars, &part{of: x})
			x.pledges++
			x.decided = x.pledges == len(x.members)
			return
		}
	}
}

// applyStars applies an instance, or forgets an instance that all members have applied.
func (h *history) applyStars(s *site) {
	for i, p := range s.stars {
		switch {
		case p.of.decided && !p.applied:
			p.applied = true
			p.of.applies++
			p.of.apply(s)
			return
		case p.of.applies == len(p.of.members):
			s.stars = slices.Delete(s.stars, i, i+1)
			return
		}
	}
}

// seen is a share with its moves.
type seen struct {
	shares.Share
	has map[string]int64
}

const aside = 11

func (h *history) share(s *site, round int) seen {
	sh := shares.Share{
		Site: s.name, Round: round, Generation: 1, Limit: h.limits[s.applied], Applied: uint64(s.applied),
		Pledged: s.pledged != nil, Left: s.left, Net: s.net,
	}
	if s.pledged != nil {
		sh.Left, sh.Offered = sh.Left-aside, sh.Offered+aside
	}
	for _, p := range s.stars {
		sh.Stars = append(sh.Stars, shares.Star{Leader: p.of.members[0].name, Counter: p.of.counter, Applied: p.applied})
		if !p.applied {
			sh.Left, sh.Offered = sh.Left-aside, sh.Offered+aside
		}
	}
	for _, o := range h.sites {
		if x := s.out[o.name]; x != nil {
			sh.Sent = append(sh.Sent, *x)
		}
		if x := s.in[o.name]; x != nil {
			sh.Received = append(sh.Received, *x)
		}
	}
	return seen{sh, maps.Clone(s.has)}
}

// read asks all sites, and then the sites to ask again, while events go on. It returns
// the last cut and its shares.
func (h *history) read(rounds, between int) (shares.Cut, []seen) {
	all := make([]seen, len(h.sites))
	asking := make([]string, 0, len(h.sites))
	for _, s := range h.sites {
		asking = append(asking, s.name)
	}
	var cut shares.Cut
	for round := range rounds {
		for i, s := range h.sites {
			if slices.Contains(asking, s.name) {
				for range rapid.IntRange(0, between).Draw(h.t, "between") {
					h.step()
				}
				all[i] = h.share(s, round)
			}
		}
		if cut = shares.Merge(plain(all)); cut.Consistent {
			break
		}
		asking = cut.Again
	}
	return cut, all
}

func plain(all []seen) []shares.Share {
	list := make([]shares.Share, 0, len(all))
	for _, s := range all {
		list = append(list, s.Share)
	}
	return list
}

// check compares the cut with the truth. Each move is in all of the books or in none,
// except for transfers under way, and all adds up.
func (h *history) check(cut shares.Cut, all []seen) {
	var offered int64
	moves := map[string]int64{}
	for _, s := range all {
		offered += s.Offered
		for name, by := range s.has {
			moves[name] += by
		}
	}
	var flying, raised int64
	for name, sum := range moves {
		switch {
		case name[:1] >= "a" && name[:1] <= "d" && sum < 0:
			flying -= sum
		case name[:1] == "m":
			raised += sum
		case sum != 0:
			h.t.Fatalf("%s is counted in part: %d; %+v", name, sum, all)
		}
	}
	if want := h.limits[0] + raised; cut.Limit != want {
		h.t.Fatalf("the limit is %d, by the instances counted %d; %+v", cut.Limit, want, all)
	}
	if cut.InTransit != offered+flying || cut.Available+cut.Acquired+cut.InTransit != cut.Limit {
		h.t.Fatalf("%+v: %d set aside, %d in transfers; %+v", cut, offered, flying, all)
	}
}

// TestConsistentCuts: a consistent cut counts every move once, from whatever moments its
// shares are. Once nothing moves, a read is consistent after three rounds.
func TestConsistentCuts(t *testing.T) {
	consistent, again := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		for range rapid.IntRange(1, 4).Draw(t, "reads") {
			for range rapid.IntRange(0, 40).Draw(t, "before") {
				h.step()
			}
			cut, all := h.read(3, 6)
			if !cut.Consistent {
				again++
				if len(cut.Again) == 0 {
					t.Fatalf("not consistent, and nobody to ask again: %+v", all)
				}
				continue
			}
			consistent++
			h.check(cut, all)
		}
		for range h.instances {
			for _, s := range h.sites {
				h.applyMajority(s)
			}
		}
		for range 2 * len(h.stars) {
			for _, s := range h.sites {
				h.applyStars(s)
			}
		}
		cut, all := h.read(3, 0)
		if !cut.Consistent {
			t.Fatalf("at rest, and not consistent after three rounds: %+v %+v", cut, all)
		}
		h.check(cut, all)
	})
	if consistent == 0 || again == 0 {
		t.Errorf("%d reads were consistent, %d were not", consistent, again)
	}
	t.Logf("%d reads while tokens moved were consistent, %d were not after three rounds", consistent, again)
}
