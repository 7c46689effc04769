package sites

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/samya-db/samya/lab/virtual"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// retention is the time for which sites remember requests: short, as no request is
// repeated.
const retention = 10 * time.Second

// site is a core and the shell that carries out its effects. A single batch at a
// time becomes durable; inputs meanwhile share the next batch.
type site struct {
	s    *Sites
	p    virtual.Place
	id   core.SiteID
	cfg  core.Config
	core *core.Core
	// life counts its starts.
	life uint64
	// reach are the other sites that seem to be in reach; nil before the first word.
	reach []core.SiteID
	// inbox are the requests that wait for the processor, from head on.
	inbox []*virtual.Request
	head  int
	// batch is the last drained batch; busy is set until it is durable.
	batch core.Effects
	busy  bool
	// wake is the time of the next event that wakes the core; 0 for none.
	wake time.Duration
	// onServed, onCommitted and onWoken are its methods as values, made once.
	onServed, onCommitted, onWoken func()

	durable
	// parcels are the messages being packed for each site, sizes their sizes in
	// bytes.
	parcels [][]message.Envelope
	sizes   []int
	acquire input.Acquire
	release input.Release
	// gossip is the last summaries sent, gossipSize their size on the wire in bytes.
	gossip     []message.Summary
	gossipSize int
	// claim is the site's tokens: left, set aside and out. Only redistributions
	// change it.
	claim core.Tokens
}

// durable is the durable state of a site, without requests.
type durable struct {
	catalogue *stored.Catalogue
	changes   []stored.Change
	entity    stored.Entity
	books     stored.Books
	// forecast is absent if its Name is empty.
	forecast stored.Forecast
}

func (s *Sites) newSite(p virtual.Place, id core.SiteID) (*site, error) {
	at := &site{s: s, p: p, id: id, parcels: make([][]message.Envelope, len(s.members)), sizes: make([]int, len(s.members))}
	at.onServed, at.onCommitted, at.onWoken = at.served, at.committed, at.woken
	cfg := core.Config{
		Self: id, Members: s.members, Retention: retention.Milliseconds(), Bin: core.Tick(s.bin.Milliseconds()), Day: at.s.day,
		Rand: at.random(),
	}
	if s.configure != nil {
		s.configure(&cfg)
	}
	at.cfg = cfg.WithDefaults()
	return at, at.start(stored.Restored{})
}

// random returns the site's random source in its present life.
func (at *site) random() *rand.Rand {
	return rand.New(rand.NewPCG(at.s.w.Options().Seed, uint64(at.p)+1+at.life<<32)) //nolint:gosec // a simulation, to be repeated
}

// start makes the core.
func (at *site) start(from stored.Restored) error {
	var err error
	if at.core, err = core.New(at.cfg, from); err != nil {
		return fmt.Errorf("starting site %s: %w", at.id, err)
	}
	return nil
}

// crashed forgets all state that is not durable.
func (at *site) crashed() {
	at.life++
	at.core = nil
	at.inbox, at.head = at.inbox[:0], 0
	at.batch.Reset()
	at.busy, at.wake, at.reach = false, 0, nil
}

// restarted starts the site from its stored state.
func (at *site) restarted() {
	at.cfg.Rand = at.random()
	if err := at.start(at.stored()); err != nil {
		at.s.fail("again: %w", err)
		return
	}
	at.settle()
}

// stored returns the state on disk for a start.
func (d *durable) stored() stored.Restored {
	from := stored.Restored{Catalogue: d.catalogue, Changes: d.changes}
	if d.entity.Name != "" {
		from.Entities, from.Books = []stored.Entity{d.entity}, []stored.Books{d.books}
	}
	if d.forecast.Name != "" {
		from.Forecasts = []stored.Forecast{d.forecast}
	}
	return from
}

// now returns the time at the site.
func (at *site) now() input.Now {
	ms := at.s.w.Now().Milliseconds()
	return input.Now{Tick: core.Tick(ms), Wall: ms}
}

// step hands the core an input.
func (at *site) step(in input.Input) {
	if at.core == nil {
		return // The core could not be started, and the error is kept.
	}
	at.core.Step(at.now(), in)
	at.settle()
}

// settle drains the core if no batch is under way, and schedules its next wake.
func (at *site) settle() {
	w := at.s.w
	if !at.busy && at.core.Pending() {
		at.core.Drain(&at.batch)
		if at.batch.Records.Empty() {
			at.carryOut()
		} else {
			at.busy = true
			w.Commit(at.p, at.onCommitted)
		}
	}
	if tick := at.core.WakeAt(); tick != 0 {
		due := max(w.Now(), time.Duration(tick)*time.Millisecond)
		if at.wake == 0 || due < at.wake {
			at.wake = due
			w.After(at.p, due-w.Now(), at.onWoken)
		}
	}
}

// woken wakes the core, unless its wake has moved.
func (at *site) woken() {
	if at.s.w.Now() != at.wake {
		return
	}
	at.wake = 0
	if tick := at.core.WakeAt(); tick != 0 && tick <= at.now().Tick {
		at.core.Step(at.now(), input.Wake{})
	}
	at.settle()
}

// committed makes the batch durable and carries it out.
func (at *site) committed() {
	at.busy = false
	records := &at.batch.Records
	if records.Catalogue != nil {
		at.catalogue = records.Catalogue
	}
	at.changes = append(at.changes, records.Changes...)
	for i := range records.Books {
		at.books = records.Books[i]
	}
	for i := range records.Entities {
		at.entity = records.Entities[i]
	}
	for i := range records.Forecasts {
		at.forecast = records.Forecasts[i]
	}
	if len(records.Entities) > 0 {
		claim := at.books.Left + at.books.Net + aside(&at.entity)
		if at.s.started {
			at.s.did.moved += int64(max(0, claim-at.claim))
		}
		at.claim = claim
	}
	at.carryOut()
	at.settle()
}

// aside returns the tokens that a site has set aside for instances under way.
func aside(e *stored.Entity) core.Tokens {
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

// carryOut sends the messages and replies of a durable batch.
func (at *site) carryOut() {
	for i := range at.batch.Events {
		at.happened(&at.batch.Events[i])
	}
	at.send(at.batch.Messages)
	for i := range at.batch.Replies {
		at.replied(&at.batch.Replies[i])
	}
	at.batch.Reset()
}

// send packs messages into a parcel for each receiver.
func (at *site) send(messages []message.Envelope) {
	if len(messages) == 0 {
		return
	}
	for i := range messages {
		m := &messages[i]
		to := at.s.place[m.To()]
		at.parcels[to] = append(at.parcels[to], *m)
		at.sizes[to] += at.count(m)
	}
	for to, parcel := range at.parcels {
		if len(parcel) == 0 {
			continue
		}
		receiver := at.s.sites[to]
		at.s.w.Send(at.p, virtual.Place(to), at.sizes[to], func() {
			receiver.step(input.Deliver{From: at.id, Messages: parcel})
		})
		at.parcels[to], at.sizes[to] = nil, 0
	}
}

// take queues a request for the processor.
func (at *site) take(r *virtual.Request) {
	at.inbox = append(at.inbox, r)
	at.s.w.Serve(at.p, at.onServed)
}

// served hands the core the first request of the inbox.
func (at *site) served() {
	r := at.inbox[at.head]
	if at.head++; at.head == len(at.inbox) {
		at.inbox, at.head = at.inbox[:0], 0
	}
	if at.core == nil {
		return // The core could not be started, and the error is kept.
	}
	switch r.Kind {
	case virtual.Acquire:
		at.acquires(r)
	case virtual.Release:
		at.release = input.Release{Call: r, Entity: entityName, Tokens: 1, Request: keyOf(r)}
		at.step(&at.release)
	case virtual.ReadStale:
		at.readsStale(r)
	case virtual.ReadExact:
		at.readsExact(r)
	default:
		at.s.fail("a request of kind %d", r.Kind)
	}
}

// acquires hands the core an acquire.
func (at *site) acquires(r *virtual.Request) {
	wait := (r.Deadline - at.s.w.Now()).Round(time.Millisecond)
	at.acquire = input.Acquire{
		Call: r, Entity: entityName, Tokens: 1, Request: keyOf(r), Wait: core.Tick(max(0, wait.Milliseconds())),
	}
	before := at.core.Status().Waiting
	at.core.Step(at.now(), &at.acquire)
	if at.core.Status().Waiting > before {
		at.s.did.waited++
	}
	at.settle()
}

// keyOf returns the request id of a request.
func keyOf(r *virtual.Request) (k attempt.Key) {
	k[0] = byte(r.Kind)
	binary.LittleEndian.PutUint32(k[12:], uint32(r.Of)) //nolint:gosec // an index
	return k
}

// setup is the call of the run's own request to a site.
type setup struct {
	what string
	view answer.View
}

// replied hands a reply to its caller.
func (at *site) replied(reply *core.Reply) {
	code := reply.Answer.Code
	switch c := reply.Call.(type) {
	case *virtual.Request:
		if c.Kind == virtual.ReadStale && code == answer.OK {
			at.s.did.known(reply.Answer.View())
		}
		at.tells(c, code)
	case *question:
		c.answered(&reply.Answer)
	case *setup:
		c.view = *reply.Answer.View()
		if code != answer.OK {
			at.s.fail("site %s: %s is answered %v", at.id, c.what, code)
		}
	}
}

// rounding is the time before a deadline at which a site may answer: it counts
// milliseconds.
const rounding = 2 * time.Millisecond

// tells answers a request.
func (at *site) tells(r *virtual.Request, code answer.Code) {
	s := at.s
	switch {
	case code == answer.OK:
		s.answer(r, virtual.Granted)
	case r.Kind == virtual.Acquire && code == answer.OutOfTokens:
		if s.w.Now() >= r.Deadline-rounding {
			s.answer(r, virtual.TimedOut)
		} else {
			s.answer(r, virtual.Refused)
		}
	case r.Kind == virtual.Acquire && code == answer.ExceedsLimit:
		s.answer(r, virtual.Refused)
	case r.Kind == virtual.Acquire && (code == answer.QueueFull || code == answer.Overloaded):
		s.did.refusedBy(code)
		s.answer(r, virtual.Refused)
	default:
		s.fail("site %s: a request of kind %d is answered %v", at.id, r.Kind, code)
	}
}
