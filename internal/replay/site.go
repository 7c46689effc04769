package replay

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/samya-db/samya/site/core"
)

// retention is how long sites remember requests: none is repeated, so that it
// need not be long.
const retention = 10 * time.Second

// site is the core of one site with the shell that carries out its effects: one
// batch at a time becomes durable, and what comes meanwhile shares the next.
type site struct {
	r    *run
	i    int
	id   core.SiteID
	cfg  core.Config
	core *core.Core
	// batch is what was drained last, and busy set until it is durable.
	batch core.Effects
	busy  bool
	// wake is when the next event to wake the core is due; 0 for none.
	wake time.Duration

	// What is durable, but for requests.
	catalogue *core.CatalogueRecord
	changes   []core.ChangeRecord
	entity    core.EntityRecord
	books     core.BooksRecord
	// parcels are those being packed for each site, or -1.
	parcels [len(regions)]int32
	acquire core.Acquire
	release core.Release
	// claim is what the site holds, has set aside and has out: only
	// redistributions change it. out is what its clients hold, peak the most.
	claim     core.Tokens
	out, peak int
}

func newSite(r *run, i int, o *Options) (*site, error) {
	s := &site{r: r, i: i, id: regions[i]}
	cfg := core.Config{
		Self: s.id, Members: r.members, Retention: retention.Milliseconds(), Bin: core.Tick(Bin.Milliseconds()), Day: binsADay,
		Rand: rand.New(rand.NewPCG(o.Demand.Seed, uint64(i)+1)), //nolint:gosec // a simulation, to be repeated
	}
	if o.Configure != nil {
		o.Configure(&cfg)
	}
	s.cfg = cfg.WithDefaults()
	var err error
	if s.core, err = core.New(s.cfg, core.Restored{}); err != nil {
		return nil, fmt.Errorf("starting site %s: %w", s.id, err)
	}
	return s, nil
}

// now is the time at the site.
func (s *site) now() core.Now {
	ms := s.r.now.Milliseconds()
	return core.Now{Tick: core.Tick(ms), Wall: ms}
}

// step hands the core an input.
func (s *site) step(in core.Input) {
	s.core.Step(s.now(), in)
	s.settle()
}

// settle drains the core, if no batch is under way, and sees to its next wake.
func (s *site) settle() {
	if !s.busy && s.core.Pending() {
		s.core.Drain(&s.batch)
		if s.batch.Records.Empty() {
			s.carryOut()
		} else {
			s.busy = true
			s.r.at(s.r.now+s.r.o.Commit, event{site: int8(s.i), kind: committed})
		}
	}
	if at := s.core.WakeAt(); at != 0 {
		due := max(s.r.now, time.Duration(at)*time.Millisecond)
		if s.wake == 0 || due < s.wake {
			s.wake = due
			s.r.at(due, event{site: int8(s.i), kind: woken})
		}
	}
}

// woken wakes the core, unless what was due is not any more.
func (s *site) woken() {
	if s.r.now != s.wake {
		return
	}
	s.wake = 0
	if at := s.core.WakeAt(); at != 0 && at <= s.now().Tick {
		s.core.Step(s.now(), core.Wake{})
	}
	s.settle()
}

// committed makes the batch durable and carries it out.
func (s *site) committed() {
	s.busy = false
	records := &s.batch.Records
	if records.Catalogue != nil {
		s.catalogue = records.Catalogue
	}
	s.changes = append(s.changes, records.Changes...)
	for i := range records.Books {
		s.books = records.Books[i]
	}
	for i := range records.Entities {
		s.entity = records.Entities[i]
	}
	if len(records.Entities) > 0 {
		claim := s.books.Left + s.books.Net + aside(&s.entity)
		if s.r.started {
			s.r.result.TokensMoved += int64(max(0, claim-s.claim))
		}
		s.claim = claim
	}
	s.carryOut()
	s.settle()
}

// aside is what a site has set aside for instances under way.
func aside(e *core.EntityRecord) core.Tokens {
	var sum core.Tokens
	if p := e.Protocol.Pledge; p != nil {
		sum += p.Offered
	}
	for i := range e.Star.Slices {
		if s := &e.Star.Slices[i]; !s.Committed {
			sum += s.Pledge.Offered
		}
	}
	return sum
}

// carryOut lets the messages and replies of a durable batch leave.
func (s *site) carryOut() {
	for i := range s.batch.Events {
		s.happened(&s.batch.Events[i])
	}
	s.send(s.batch.Messages)
	for i := range s.batch.Replies {
		s.replied(&s.batch.Replies[i])
	}
	s.batch.Reset()
}

func (s *site) happened(e *core.Event) {
	result := &s.r.result
	switch e.Kind {
	case core.RedistributionStarted:
		result.Begun[variantName(e.Variant)+" "+e.Trigger]++
	case core.RedistributionApplied:
		result.Applied++
	case core.RedistributionFailed:
		result.Failed++
	case core.GaveUp:
		result.GaveUp++
	case core.ProtocolFault:
		s.r.fail("site %s: protocol fault: %w", s.id, e.Err)
	case core.ForecastDropped:
		s.r.fail("site %s has not taken up what its model had learnt", s.id)
	}
}

func variantName(v core.Variant) string {
	switch v {
	case core.Majority:
		return "majority"
	case core.Star:
		return "star"
	case core.Direct:
		return "direct"
	}
	return fmt.Sprintf("variant-%d", v)
}

// send packs messages into a parcel for each receiver.
func (s *site) send(messages []core.Envelope) {
	if len(messages) == 0 {
		return
	}
	for i := range s.parcels {
		s.parcels[i] = -1
	}
	for i := range messages {
		m := &messages[i]
		switch {
		case m.Gossip != nil:
			s.r.result.Gossip++
		case m.Entity != "":
			s.r.result.Messages++
		}
		to := s.r.index(m.To())
		if s.parcels[to] < 0 {
			s.parcels[to] = s.r.network.pack(s.id)
		}
		p := &s.r.network.parcels[s.parcels[to]]
		p.messages = append(p.messages, *m)
	}
	for to, p := range s.parcels {
		if p >= 0 {
			s.r.at(s.r.network.arrival(s.i, to, s.r.now), event{site: int8(to), kind: arrived, of: p})
		}
	}
}

// call is a lease as its site knows it: the call of its acquire.
type call struct {
	*Lease
	index int32
}

// giveBack is the same as the call of its release.
type giveBack call

// acquires hands the core the acquire of a call.
func (s *site) acquires(c *call) {
	s.acquire = core.Acquire{Call: c, Entity: entityName, Tokens: 1, Request: keyOf(c, 'a'), Wait: s.r.wait}
	before := s.core.Status().Waiting
	s.core.Step(s.now(), &s.acquire)
	if s.core.Status().Waiting > before {
		s.r.result.Waited++
	}
	s.settle()
}

// releases hands the core the release of a call.
func (s *site) releases(c *call) {
	s.release = core.Release{Call: (*giveBack)(c), Entity: entityName, Tokens: 1, Request: keyOf(c, 'r')}
	s.step(&s.release)
}

// keyOf makes the request id of a call.
func keyOf(c *call, kind byte) (k core.RequestKey) {
	k[0] = kind
	binary.LittleEndian.PutUint32(k[12:], uint32(c.index))
	return k
}

// replied takes a reply to its client.
func (s *site) replied(reply *core.Reply) {
	r, code := s.r, reply.Answer.Code
	switch c := reply.Call.(type) {
	case *call:
		r.pending--
		if code != core.OK && code != core.OutOfTokens {
			r.fail("site %s: an acquire is answered %v", s.id, code)
			return
		}
		r.answered(s, c, code == core.OK)
	case *giveBack:
		r.pending--
		r.result.Releases++
		if code != core.OK {
			r.fail("site %s: a release is answered %v", s.id, code)
		}
	case *setup:
		c.view = *reply.Answer.View()
		if code != core.OK {
			r.fail("site %s: %s is answered %v", s.id, c.what, code)
		}
	}
}

// setup is the call of what the run itself asks of a site.
type setup struct {
	what string
	view core.View
}
