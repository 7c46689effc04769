package star

import (
	"cmp"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/samya-db/samya/avantan"
	_ "github.com/samya-db/samya/internal/testheap"
)

func sites(t *testing.T, left map[SiteID]Tokens) *cluster {
	t.Helper()
	return newCluster(left, 4, func(SiteID) avantan.Rand { return least{} })
}

// stabilize delivers all, in order, and checks the invariants.
func (c *cluster) stabilize(t *testing.T) {
	t.Helper()
	for len(c.net) > 0 {
		m := c.net[0]
		c.net = c.net[1:]
		if n := c.node(m.To); n.up {
			c.settle(n, Input{Receive: &m})
		}
		if err := c.check(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestConfigValidate(t *testing.T) {
	good := func() *Config {
		return &Config{
			Self: "b", Members: []SiteID{"a", "b"}, Window: 10, Patience: 30, Backoff: 5, MaxBackoff: 50, MaxSlices: 2, Rand: least{},
		}
	}
	if err := good().Validate(); err != nil {
		t.Fatal(err)
	}
	many := make([]SiteID, avantan.MaxMembers+1)
	for name, test := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"no members":       {func(c *Config) { c.Members = nil }, "Members"},
		"too many members": {func(c *Config) { c.Members = many }, "Members"},
		"empty member":     {func(c *Config) { c.Members = []SiteID{"", "b"} }, "empty name"},
		"twice":            {func(c *Config) { c.Members = []SiteID{"b", "b"} }, "once"},
		"stranger":         {func(c *Config) { c.Self = "z" }, "Self"},
		"window":           {func(c *Config) { c.Window = 0 }, "Window"},
		"patience":         {func(c *Config) { c.Patience = 29 }, "Patience"},
		"huge window":      {func(c *Config) { c.Window = 1 << 63 }, "Patience"},
		"backoff":          {func(c *Config) { c.Backoff = 0 }, "Backoff"},
		"max backoff":      {func(c *Config) { c.MaxBackoff = 4 }, "MaxBackoff"},
		"few slices":       {func(c *Config) { c.MaxSlices = 1 }, "MaxSlices"},
		"many slices":      {func(c *Config) { c.MaxSlices = MaxSlices + 1 }, "MaxSlices"},
		"rand":             {func(c *Config) { c.Rand = nil }, "Rand"},
	} {
		t.Run(name, func(t *testing.T) {
			c := good()
			test.change(c)
			if err := c.Validate(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Validate() = %v, want it to name %s", err, test.want)
			}
		})
	}
}

// TestMalformedMessages: a message that is malformed, from a stranger or for somebody
// else has no effect at all.
func TestMalformedMessages(t *testing.T) {
	of := func(sites ...SiteID) *Value {
		v := &Value{Policy: "even"}
		for _, s := range sites {
			v.Contributions = append(v.Contributions, avantan.Contribution{Site: s})
		}
		return v
	}
	a1, b1, c1 := ID{"a", 1}, ID{"b", 1}, ID{"c", 1}
	changing := of("a", "b")
	changing.Change = []byte("5")
	negative := of("a", "b")
	negative.Contributions[0].Wanted = -1
	for name, m := range map[string]Message{
		"no kind":               {ID: b1},
		"unknown kind":          {Kind: Settled + 1, ID: b1},
		"from itself":           {Kind: Election, From: "a", ID: a1},
		"from a stranger":       {Kind: Election, From: "z", ID: ID{"z", 1}},
		"to somebody else":      {Kind: Election, To: "c", ID: b1},
		"no instance":           {Kind: Election},
		"no leader":             {Kind: Abort, ID: ID{"", 1}},
		"no counter":            {Kind: Election, ID: ID{"b", 0}},
		"huge counter":          {Kind: Election, ID: ID{"b", avantan.MaxNumber + 1}},
		"a stranger's instance": {Kind: Abort, ID: ID{"z", 1}},
		"another's election":    {Kind: Election, ID: c1},
		"another's discard":     {Kind: Discard, ID: c1},
		"another's settled":     {Kind: Settled, ID: c1},
		"an answer to another":  {Kind: ElectionOk, ID: c1},
		"busy to another":       {Kind: Busy, ID: b1},
		"applied to another":    {Kind: Applied, ID: c1},
		"unknown press":         {Kind: Election, ID: b1, Press: 9},
		"another's offer":       {Kind: ElectionOk, ID: a1, Contribution: &avantan.Contribution{Site: "c"}},
		"a bad offer":           {Kind: ElectionOk, ID: a1, Contribution: &avantan.Contribution{Site: "b", Wanted: -1}},
		"accept without value":  {Kind: Accept, ID: b1},
		"value of one":          {Kind: Accept, ID: b1, Value: of("b")},
		"value with a change":   {Kind: Accept, ID: b1, Value: changing},
		"value out of order":    {Kind: Accept, ID: b1, Value: of("b", "a")},
		"value with duplicates": {Kind: Accept, ID: b1, Value: of("a", "a", "b")},
		"value with a stranger": {Kind: Accept, ID: b1, Value: of("a", "b", "z")},
		"value below zero":      {Kind: Accept, ID: b1, Value: negative},
		"value without me":      {Kind: Accept, ID: b1, Value: of("b", "c")},
		"value without you":     {Kind: Accept, ID: c1, Value: of("a", "c")},
		"value without leader":  {Kind: Accept, ID: c1, Value: of("a", "b")},
		"never begun":           {Kind: Abort, ID: a1},
	} {
		t.Run(name, func(t *testing.T) {
			s := sites(t, map[SiteID]Tokens{"a": 100, "b": 100, "c": 100})
			if m.From == "" {
				m.From = "b"
			}
			if m.To == "" {
				m.To = "a"
			}
			n := s.node("a")
			out := n.m.Step(1, Input{Receive: &m})
			if !errors.Is(out.Err, errMessage) {
				t.Errorf("Err = %v, want errMessage", out.Err)
			}
			// The site may have missed that another joined.
			if stranger := strings.Contains(name, "stranger"); errors.Is(out.Err, avantan.ErrStranger) != stranger {
				t.Errorf("Err = %v; it names a stranger: %t", out.Err, stranger)
			}
			st := n.m.State()
			if out.Persist || out.Messages != nil || out.Applied != nil || n.b.left != 100 || len(st.Slices)+len(st.Floors) > 0 || n.m.Open() {
				t.Errorf("it had an effect: %+v, %+v", out, st)
			}
		})
	}
}

func TestStateValidate(t *testing.T) {
	own := avantan.Contribution{Site: "a", Offered: 5}
	other := avantan.Contribution{Site: "b", Offered: 7}
	value := &Value{Contributions: []avantan.Contribution{own, other}}
	good := func() *State {
		return &State{
			Reserved: 32,
			Slices:   []Slice{{ID: ID{"a", 3}, Pledge: own, Value: value}, {ID: ID{"b", 2}, Pledge: own}},
			Floors:   []ID{{"b", 2}},
		}
	}
	if err := good().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(*State)
		want   string
	}{
		"reserved":        {func(s *State) { s.Reserved = 1 << 63 }, "Reserved"},
		"many slices":     {func(s *State) { s.Slices = make([]Slice, MaxSlices+1) }, "Slices"},
		"many floors":     {func(s *State) { s.Floors = make([]ID, avantan.MaxMembers+1) }, "Floors"},
		"slices unsorted": {func(s *State) { s.Slices[0].ID = ID{"b", 3} }, "sorted"},
		"floors unsorted": {func(s *State) { s.Floors = []ID{{"b", 2}, {"b", 2}} }, "sorted"},
		"floor of nobody": {func(s *State) { s.Floors[0].Counter = 0 }, "floor"},
		"no instance":     {func(s *State) { s.Slices[0].ID.Counter = 0 }, "no instance"},
		"bad pledge":      {func(s *State) { s.Slices[1].Pledge.Wanted = -1 }, "Wanted"},
		"two without vote": {func(s *State) {
			s.Slices = append(s.Slices, Slice{ID: ID{"c", 1}, Pledge: own})
			s.Floors = append(s.Floors, ID{"c", 1})
		}, "without a vote"},
		"committed nothing": {func(s *State) { s.Slices[1].Committed = true }, "without a value"},
		"leader unvoted":    {func(s *State) { s.Slices[0].Value = nil }, "leader"},
		"another pledge":    {func(s *State) { s.Slices[0].Pledge.Offered++ }, "pledge"},
		"without leader":    {func(s *State) { s.Slices[1].ID = ID{"c", 1}; s.Slices[1].Value = value; s.Floors[0].Leader = "c" }, "leader"},
		"value of one":      {func(s *State) { s.Slices[0].Value = &Value{Contributions: value.Contributions[:1]} }, "two"},
		"above reserved":    {func(s *State) { s.Reserved = 2 }, "Reserved"},
		"above floor":       {func(s *State) { s.Floors[0].Counter = 1 }, "floor"},
	} {
		t.Run(name, func(t *testing.T) {
			s := good()
			test.change(s)
			if err := s.Validate(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Validate() = %v, want it to name %s", err, test.want)
			}
		})
	}
}

// TestNothingToGain: where nobody else offers anything there is nothing to agree on.
func TestNothingToGain(t *testing.T) {
	for name, left := range map[string]map[SiteID]Tokens{
		"alone":          {"a": 100},
		"others have 0":  {"a": 100, "b": 0, "c": 0},
		"others in debt": {"a": 100, "b": -10, "c": 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := sites(t, left)
			a := s.node("a")
			s.settle(a, Input{Begin: &Proposal{Short: 10}})
			s.stabilize(t)
			if len(s.values) != 0 || s.failed[FailedNothing] != 1 {
				t.Errorf("built %v, failed %v", s.values, s.failed)
			}
			for _, n := range s.nodes {
				if n.b.left != left[n.id] || n.m.Open() || len(n.m.State().Slices) > 0 {
					t.Errorf("%s: left %d, %+v", n.id, n.b.left, n.m.State())
				}
			}
			s.settle(a, Input{Begin: &Proposal{Short: 10}})
			if !a.m.Waits() {
				t.Error("the next attempt does not wait for the end of a back-off")
			}
		})
	}
}

// TestUnacceptableProposal: a leader does not build a value that its own ledger would not
// apply, and gives back the tokens that it set aside for it.
func TestUnacceptableProposal(t *testing.T) {
	s := sites(t, map[SiteID]Tokens{"a": 100, "b": 100})
	a, b := s.node("a"), s.node("b")
	s.settle(a, Input{Begin: &Proposal{Policy: "whim"}})
	s.stabilize(t)
	if s.failed[FailedUnacceptable] != 1 || a.b.left != 100 || b.b.left != 100 || a.m.Open() || b.m.Open() {
		t.Errorf("failed %v, left %d and %d", s.failed, a.b.left, b.b.left)
	}
}

// TestEnoughSaturates: sums of offers saturate, so a hostile contribution can neither
// overflow nor hide the other offers.
func TestEnoughSaturates(t *testing.T) {
	of := func(offered, wanted Tokens) avantan.Contribution {
		return avantan.Contribution{Offered: offered, Wanted: wanted}
	}
	const most = math.MaxInt64
	for name, test := range map[string]struct {
		list  []avantan.Contribution
		short Tokens
		want  bool
	}{
		"enough":         {[]avantan.Contribution{of(5, 0), of(6, 1)}, 10, true},
		"not enough":     {[]avantan.Contribution{of(5, 0), of(6, 2)}, 10, false},
		"two of most":    {[]avantan.Contribution{of(most, 0), of(most, 0)}, most, true},
		"two of least":   {[]avantan.Contribution{of(math.MinInt64, 0), of(math.MinInt64, most)}, math.MinInt64 + 1, false},
		"most wanted":    {[]avantan.Contribution{of(0, most), of(0, most), of(100, 0)}, 1, false},
		"nothing wanted": {nil, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := &lead{contributions: test.list, proposal: Proposal{Short: test.short}}
			if got := l.enough(); got != test.want {
				t.Errorf("enough() = %v", got)
			}
		})
	}
}

// TestElectionsShareAReservation: a block of counters is one transaction. Elections that
// build nothing need no other transaction until the block is used up.
func TestElectionsShareAReservation(t *testing.T) {
	s := sites(t, map[SiteID]Tokens{"a": 0, "b": 0})
	a := s.node("a")
	syncs := 0
	for range 2 * block {
		if s.step(a, Input{Begin: &Proposal{}}).Persist {
			syncs++
		}
		s.syncAll(a)
		s.stabilize(t)
		s.now += a.cfg.MaxBackoff
	}
	if got := a.m.next - 1; got != 2*block || syncs != 2 {
		t.Errorf("%d elections, %d transactions", got, syncs)
	}
}

// TestFull: at its bound a site neither pledges nor leads, and says why.
func TestFull(t *testing.T) {
	s := sites(t, map[SiteID]Tokens{"a": 100, "b": 100, "c": 100})
	a := s.node("a")
	own := avantan.Contribution{Site: "a"}
	st := State{Floors: []ID{{"b", 9}}}
	for i := range a.cfg.MaxSlices {
		v := &Value{Contributions: []avantan.Contribution{own, {Site: "b"}}}
		st.Slices = append(st.Slices, Slice{ID: ID{"b", uint64(i + 1)}, Pledge: own, Value: v, Committed: true})
	}
	if err := st.Validate(); err != nil {
		t.Fatal(err)
	}
	a.m = New(a.cfg, a.b, st)
	if out := a.m.Step(1, Input{Begin: &Proposal{Short: 1}}); out.Failed != FailedFull || len(out.Messages) != 0 {
		t.Errorf("Begin = %+v, want FailedFull", out)
	}
	out := a.m.Step(1, Input{Receive: &Message{Kind: Election, From: "c", To: "a", ID: ID{"c", 1}}})
	if len(out.Messages) != 1 || out.Messages[0].Kind != Busy || out.Persist {
		t.Errorf("answers %+v, want Busy", out)
	}
	// A slice is settled: the waiting election is answered.
	out = a.m.Step(1, Input{Receive: &Message{Kind: Settled, From: "b", To: "a", ID: ID{"b", 2}}})
	if len(out.Messages) != 1 || out.Messages[0].Kind != ElectionOk || !out.Persist {
		t.Errorf("answers %+v, want ElectionOk", out)
	}
}

// TestViolations: a message that contradicts this site's knowledge is reported, and never
// accepted. If the site has not voted on its instance, the site votes against it.
func TestViolations(t *testing.T) {
	for name, test := range map[string]struct {
		message  Message
		want     string
		accepted bool
		answer   Kind
	}{
		"another pledge": {
			Message{Kind: Accept, ID: ID{"b", 1}, Value: &Value{Policy: "even", Contributions: []avantan.Contribution{{Site: "a", Offered: 51}, {Site: "b"}}}},
			"not pledged here", false, Abort,
		},
		"two values": {
			Message{Kind: Accept, ID: ID{"b", 1}, Value: &Value{Policy: "even", Contributions: []avantan.Contribution{{Site: "a", Offered: 50}, {Site: "b", Offered: 1}, {Site: "c"}}}},
			"two values", true, 0,
		},
		"never pledged": {
			Message{Kind: Accept, From: "c", ID: ID{"c", 2}, Value: &Value{Policy: "even", Contributions: []avantan.Contribution{{Site: "a", Offered: 50}, {Site: "c"}}}},
			"never pledged here", false, Abort,
		},
		"committed too early": {
			Message{Kind: Commit, ID: ID{"b", 1}}, "without this site's vote", false, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := sites(t, map[SiteID]Tokens{"a": 100, "b": 0, "c": 0})
			a := s.node("a")
			a.m.Step(1, Input{Receive: &Message{Kind: Election, From: "b", To: "a", ID: ID{"b", 1}}})
			if test.accepted {
				v := &Value{Policy: "even", Contributions: []avantan.Contribution{{Site: "a", Offered: 50}, {Site: "b"}, {Site: "c"}}}
				a.m.Step(1, Input{Receive: &Message{Kind: Accept, From: "b", To: "a", ID: ID{"b", 1}, Value: v}})
			}
			m := test.message
			m.From, m.To = cmp.Or(m.From, "b"), "a"
			out := a.m.Step(2, Input{Receive: &m})
			violation, ok := errors.AsType[*violationError](out.Err)
			if !ok || !strings.Contains(violation.Error(), test.want) || out.Applied != nil {
				t.Errorf("%+v, want a violation: %s", out, test.want)
			}
			var answer Kind
			if len(out.Messages) > 0 {
				answer = out.Messages[0].Kind
			}
			if answer != test.answer || out.Persist != (test.answer == Abort) {
				t.Errorf("answers %v, persist %v, want %v", answer, out.Persist, test.answer)
			}
			_, kept := a.m.State().find(m.ID)
			if test.answer == Abort && (kept || a.m.State().floor(m.ID.Leader) != m.ID.Counter) {
				t.Errorf("%+v, want no slice for %v and its floor there", a.m.State(), m.ID)
			}
		})
	}
}

// TestTimeDoesNotWrap: a time-out far in the future does not wrap round to the past.
func TestTimeDoesNotWrap(t *testing.T) {
	s := sites(t, map[SiteID]Tokens{"a": 100, "b": 100})
	a := s.node("a")
	s.now = math.MaxUint64 - 5
	s.settle(a, Input{Begin: &Proposal{Short: 10}})
	if at, ok := a.m.WakeAt(); !ok || at != math.MaxUint64 {
		t.Errorf("wakes at %d, %v", at, ok)
	}
}
