package sites

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/samya-db/samya/lab/virtual"
	"github.com/samya-db/samya/predict"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/input"
)

// DetectionTime is the default of Sites.Detection.
const DetectionTime = 1500 * time.Millisecond

// entityName is the name of the only entity of a run.
const entityName = "vm"

// Sites is a virtual.System with a site at each place of its world. It serves a
// single run.
type Sites struct {
	// Detection is the time after a crash, a cut or its end at which the cores hear
	// whom their sites seem to reach: the delay of membership. 0 means
	// DetectionTime.
	Detection time.Duration

	configure func(*core.Config)
	history   [][]predict.Bin
	training  *Training
	bin       time.Duration
	day       int
	w         *virtual.World
	limit     core.Tokens
	answer    func(*virtual.Request, virtual.Outcome)
	sites     []*site
	members   []core.SiteID
	// place maps a site to its place.
	place map[core.SiteID]virtual.Place
	// started is set once requests may come.
	started bool
	did     counts
	err     error
}

// New makes sites with modules chosen by configure, which may be nil. Self,
// Members, Retention, Bin, Day and Rand are filled in before.
func New(configure func(*core.Config)) *Sites {
	return &Sites{configure: configure, bin: 5 * time.Second, day: 288, training: new(Training)}
}

// Learn implements virtual.Learner: sites start with models that have seen the
// history.
func (s *Sites) Learn(history [][]predict.Bin, bin time.Duration, day int) {
	s.history, s.bin, s.day = history, bin, day
}

// Start implements virtual.System. Its error names an unknown module.
func (s *Sites) Start(w *virtual.World, limit int, answer func(*virtual.Request, virtual.Outcome)) error {
	s.w, s.limit, s.answer = w, core.Tokens(limit), answer
	s.Detection = cmp.Or(s.Detection, DetectionTime)
	s.did.begun = make(map[string]int)
	names := virtual.Names(w.Options().Places)
	s.place = make(map[core.SiteID]virtual.Place)
	for i, n := range names {
		s.members = append(s.members, core.SiteID(n))
		s.place[core.SiteID(n)] = virtual.Place(i)
	}
	slices.Sort(s.members)
	for i, n := range names {
		at, err := s.newSite(virtual.Place(i), core.SiteID(n))
		if err != nil {
			return err
		}
		s.sites = append(s.sites, at)
	}
	w.At(time.Millisecond, s.create)
	w.At(virtual.Lead, s.train)
	w.Watch(s.changed)
	return nil
}

// create creates the entity at all sites.
func (s *Sites) create() {
	for _, at := range s.sites {
		at.settle()
	}
	s.sites[0].step(&input.Change{
		Call: &setup{what: "creating the entity"}, Kind: input.CreateEntity, Name: entityName, Limit: s.limit,
		RequestID: "create", Wait: 5000,
	})
}

// Handle implements virtual.System.
func (s *Sites) Handle(r *virtual.Request) { s.sites[r.Place].take(r) }

// Crashed implements virtual.System.
func (s *Sites) Crashed(p virtual.Place) { s.sites[p].crashed() }

// Restarted implements virtual.System: the site restarts from its stored state.
func (s *Sites) Restarted(p virtual.Place) { s.sites[p].restarted() }

// changed tells all sites, after Detection, whom they reach then.
func (s *Sites) changed() { s.w.At(s.w.Now()+s.Detection, s.detect) }

// detect tells the sites that are up whom they reach.
func (s *Sites) detect() {
	for p, at := range s.sites {
		if !s.w.Up(virtual.Place(p)) {
			continue
		}
		up := make([]core.SiteID, 0, len(s.sites))
		for q, other := range s.sites {
			if p != q && s.w.Reaches(virtual.Place(p), virtual.Place(q)) {
				up = append(up, other.id)
			}
		}
		at.reach = up
		at.step(input.Reachable{Sites: up})
	}
}

// Out implements virtual.System.
func (s *Sites) Out() int {
	var net core.Tokens
	for _, at := range s.sites {
		net += at.books.Net
	}
	return int(net)
}

// Free implements virtual.Knower: all tokens that are not out, less the tokens of
// sites out of reach.
func (s *Sites) Free(p virtual.Place) int {
	free := s.limit
	for q, at := range s.sites {
		free -= at.books.Net
		if !s.w.Reaches(p, virtual.Place(q)) {
			free -= at.books.Left + aside(&at.entity)
		}
	}
	return int(free)
}

// fail keeps the first error.
func (s *Sites) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("at %v: %w", s.w.Now(), fmt.Errorf(format, args...))
	}
}

// settling is the time for sites to answer Check: a site may be about to make
// another batch durable.
const settling = time.Second

// Check implements virtual.System. It lets the world go on for a second.
func (s *Sites) Check() error {
	reads := make([]setup, len(s.sites))
	for p, at := range s.sites {
		if !s.w.Up(virtual.Place(p)) {
			return fmt.Errorf("site %s is down", at.id)
		}
		reads[p].what = "reading the entity"
		at.step(&input.Read{Call: &reads[p], Entity: entityName})
	}
	s.w.Until(s.w.Now() + settling)
	var sum core.Tokens
	for p, at := range s.sites {
		v := &reads[p].view
		if v.Offered != 0 || v.Waiting != 0 || v.Left < 0 {
			s.fail("site %s comes to no rest: %+v", at.id, *v)
		}
		if v.Net != at.books.Net || v.Left != at.books.Left {
			s.fail("site %s has %d and %d out, durable are %d and %d", at.id, v.Left, v.Net, at.books.Left, at.books.Net)
		}
		sum += v.Left + v.Net
	}
	if sum != s.limit {
		s.fail("the sites have %d tokens, the limit is %d", sum, s.limit)
	}
	return s.err
}

// errBusy says that a site has not stored all its effects yet.
var errBusy = errors.New("not all is stored yet")
