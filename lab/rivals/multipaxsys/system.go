package multipaxsys

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/samya-db/samya/internal/wan"
	"github.com/samya-db/samya/lab/virtual"
)

var (
	_ virtual.System    = (*System)(nil)
	_ virtual.Elsewhere = (*System)(nil)
	_ virtual.Knower    = (*System)(nil)
)

// Mode is the way in which transactions share consensus.
type Mode string

const (
	// One runs a round for each transaction, strictly in turn: all transactions
	// change the same record, which is locked for a round (Samya, Section 5.3).
	// Transactions wait for the lock in the order of their arrival at the leader,
	// releases too. An acquire leaves the queue when it can no longer be in time; a
	// release never does. So an overloaded leader is at most 5 s behind: an acquire
	// that leaves costs no round, and there are no more releases than grants.
	One Mode = "one"
	// Batched puts all waiting transactions into an entry, and has several entries
	// under way.
	Batched Mode = "batched"
)

// ErrMode is the error of an unknown Mode.
var ErrMode = errors.New("unknown mode")

// ErrPlaces is the error of a world without the needed places.
var ErrPlaces = errors.New("places do not fit")

// Options are the options of a System.
type Options struct {
	Mode Mode
	// Clients are the regions of the clients' places; default us, as, eu, au, sa. A
	// replica stands at the first place of its region, or at a further place if
	// there is none.
	Clients []string
	// Network has the round trips between at least us, as, eu, au and sa; default
	// Table 5. New adds the round trips to Iowa and South Carolina.
	Network *wan.Matrix
	// Leader is the region that should lead: West (default), Central or East.
	Leader string
	// Apart keeps the replicas in Iowa and South Carolina up when clients crash.
	// Otherwise they crash with the clients of au and sa: in the paper a site and a
	// client crash together, five of each (Section 5.4.1).
	Apart bool
}

// System is the database.
type System struct {
	o       Options
	network *wan.Matrix
	// regions are the regions of all places: first the clients' places, clients in
	// number, then the servers.
	regions, servers []string
	clients          int
	w                *virtual.World
	random           *rand.Rand
	answer           func(*virtual.Request, virtual.Outcome)
	replicas         []*replica
	routers          []*router
	parcels          []*parcel
	stats
}

// stats counts the system's work.
type stats struct {
	entries, transactions, elections, leaders, transfers int
	late, undone, reads, staleReads, snapshots           int
	rounds                                               int
	roundTime                                            time.Duration
}

// New plans a System, with its places and its network.
func New(o Options) (*System, error) {
	if o.Mode != One && o.Mode != Batched {
		return nil, fmt.Errorf("%w %q: known are %s and %s", ErrMode, o.Mode, One, Batched)
	}
	o.Leader = cmp.Or(o.Leader, West)
	if !slices.Contains(replicaRegions[:3], o.Leader) {
		return nil, fmt.Errorf("%w: a leader in %q, it may be in %v", ErrPlaces, o.Leader, replicaRegions[:3])
	}
	if len(o.Clients) == 0 {
		o.Clients = clientRegions
	}
	if o.Network == nil {
		o.Network = wan.Samya()
	}
	s := &System{o: o}
	for _, region := range replicaRegions {
		if !slices.Contains(o.Clients, region) {
			s.servers = append(s.servers, region)
		}
	}
	s.clients, s.regions = len(o.Clients), append(slices.Clone(o.Clients), s.servers...)
	var err error
	if s.network, err = extend(o.Network); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPlaces, err)
	}
	for _, region := range s.regions {
		if !slices.Contains(s.network.Regions(), region) {
			return nil, fmt.Errorf("%w: no round trips to %q", ErrPlaces, region)
		}
	}
	return s, nil
}

// Homes returns for each place the place on whose side of a cut it is. A clients'
// place is on its own side, other places in the US are on the side of the clients
// in the US.
func (s *System) Homes() []virtual.Place {
	homes := make([]virtual.Place, len(s.regions))
	us := max(slices.Index(s.regions, West), 0)
	for i := range homes {
		homes[i] = virtual.Place(i)
		if i >= s.clients {
			homes[i] = virtual.Place(us)
		}
	}
	return homes
}

// Start brings the replicas up. The replica that should lead begins an election at
// once.
func (s *System) Start(w *virtual.World, limit int, answer func(*virtual.Request, virtual.Outcome)) error {
	if err := s.stand(w); err != nil {
		return err
	}
	s.w, s.answer = w, answer
	s.random = rand.New(rand.NewPCG(w.Options().Seed, 0x6d70)) //nolint:gosec // a simulation, to be repeated
	order := slices.Clone(replicaRegions)
	slices.SortStableFunc(order, func(a, b string) int {
		return cmp.Compare(s.network.RoundTrip(s.o.Leader, a), s.network.RoundTrip(s.o.Leader, b))
	})
	for i, region := range order {
		r, err := newReplica(s, uint64(i+1), virtual.Place(slices.Index(s.regions, region)), limit) //nolint:gosec // five
		if err != nil {
			return err
		}
		s.replicas = append(s.replicas, r)
	}
	for i := range s.clients {
		s.routers = append(s.routers, newRouter(s, virtual.Place(i)))
	}
	for _, r := range s.replicas {
		if err := r.boot(); err != nil {
			return err
		}
	}
	for _, p := range s.routers {
		p.boot()
	}
	s.replicas[0].campaign()
	s.replicas[0].pump()
	return nil
}

// stand finds the system's places in a world.
func (s *System) stand(w *virtual.World) error {
	s.regions, s.network = w.Options().Places, w.Options().Network
	s.clients = len(s.regions) - len(s.servers)
	if s.clients < 1 || !slices.Equal(s.regions[s.clients:], s.servers) {
		return fmt.Errorf("%w: the world has %v, behind the clients' places must come %v", ErrPlaces, s.regions, s.servers)
	}
	for _, region := range replicaRegions {
		if !slices.Contains(s.regions, region) || !slices.Contains(s.network.Regions(), region) {
			return fmt.Errorf("%w: the world has %v and ways between %v, %s is not among them",
				ErrPlaces, s.regions, s.network.Regions(), region)
		}
	}
	return nil
}

// Handle passes a request on.
func (s *System) Handle(r *virtual.Request) { s.routers[r.Place].handle(r) }

// replicaAt returns the replica of a place, or nil.
func (s *System) replicaAt(p virtual.Place) *replica {
	for _, r := range s.replicas {
		if r.place == p {
			return r
		}
	}
	return nil
}

// follower returns the place that crashes with a clients' place, or -1.
func (s *System) follower(p virtual.Place) virtual.Place {
	if s.o.Apart || int(p) >= s.clients {
		return -1
	}
	for region, replica := range map[string]string{"au": Central, "sa": East} {
		at := slices.Index(s.regions, replica)
		if int(p) == slices.Index(s.regions, region) && at >= s.clients {
			return virtual.Place(at)
		}
	}
	return -1
}

// Crashed takes the replica and the router of a place down.
func (s *System) Crashed(p virtual.Place) {
	if r := s.replicaAt(p); r != nil {
		r.crash()
	}
	if int(p) < len(s.routers) {
		s.routers[p].crash()
	}
	if f := s.follower(p); f >= 0 && s.w.Up(f) {
		s.w.Crash(f)
		s.replicaAt(f).crash()
	}
}

// Restarted brings the replica and the router up from the durable state.
func (s *System) Restarted(p virtual.Place) {
	if f := s.follower(p); f >= 0 && !s.w.Up(f) {
		s.w.Restart(f)
		s.restart(s.replicaAt(f))
	}
	if r := s.replicaAt(p); r != nil {
		s.restart(r)
	}
	if int(p) < len(s.routers) {
		s.routers[p].boot()
	}
}

func (s *System) restart(r *replica) {
	if err := r.boot(); err != nil {
		r.broken = fmt.Errorf("restarting replica %d: %w", r.id, err)
	}
}

// newest returns the replica with the most applied entries.
func (s *System) newest() *replica {
	return slices.MaxFunc(s.replicas, func(a, b *replica) int { return cmp.Compare(a.record.applied, b.record.applied) })
}

// Out returns the tokens granted and not released, by the entries known to be
// committed.
func (s *System) Out() int { return s.newest().record.out }

// Free returns the tokens free for the clients of a place: none if its router knows
// no leader.
func (s *System) Free(p virtual.Place) int {
	if s.routers[p].to == nil {
		return 0
	}
	newest := s.newest()
	return newest.record.limit - newest.record.out
}

// Check checks that the replicas agree and add up, and that all requests that a
// leader could do are done.
func (s *System) Check() error {
	for _, r := range s.replicas {
		if r.broken != nil {
			return r.broken
		}
		if err := r.record.check(); err != nil {
			return fmt.Errorf("replica %d: %w", r.id, err)
		}
		for _, other := range s.replicas {
			if r.record.applied == other.record.applied && !bytes.Equal(r.record.leases, other.record.leases) {
				return fmt.Errorf("replicas %d and %d differ after entry %d", r.id, other.id, r.record.applied)
			}
		}
	}
	for _, p := range s.routers {
		if n := len(p.calls); n > 0 && p.to != nil && s.w.Up(p.place) {
			return fmt.Errorf("%d requests of place %d are not done, and it has a leader", n, p.place)
		}
	}
	return nil
}

// Counters returns its counters. A round is the consensus of an entry, from its
// proposal until the leader has applied it.
func (s *System) Counters() map[string]float64 {
	c := map[string]float64{
		virtual.Messages: float64(s.w.Messages), virtual.MessageBytes: float64(s.w.Bytes), "entries": float64(s.entries),
		"transactions": float64(s.transactions), "elections": float64(s.elections), "leaders": float64(s.leaders),
		"transfers": float64(s.transfers), "late": float64(s.late), "undone": float64(s.undone),
		"exact-reads": float64(s.reads), "stale-reads": float64(s.staleReads), "snapshots": float64(s.snapshots),
	}
	if s.rounds > 0 {
		c["round-ms"] = float64(s.roundTime) / float64(s.rounds) / float64(time.Millisecond)
	}
	return c
}
