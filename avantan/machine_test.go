package avantan

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	_ "github.com/samya-db/samya/internal/testheap"
)

func trio(t *testing.T) *cluster {
	t.Helper()
	return newCluster(map[SiteID]Tokens{"a": 100, "b": 100, "c": 100}, func(SiteID) Rand { return least{} })
}

func TestConfigValidate(t *testing.T) {
	good := func() *Config {
		return &Config{
			Self: "b", Window: 10, Patience: 30, Backoff: 5, MaxBackoff: 50, Rand: least{},
		}
	}
	if err := good().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"self":        {func(c *Config) { c.Self = "" }, "Self"},
		"wait":        {func(c *Config) { c.Wait = WaitQuorum + 1 }, "Wait"},
		"window":      {func(c *Config) { c.Window = 0 }, "Window"},
		"patience":    {func(c *Config) { c.Patience = 10 }, "Patience"},
		"backoff":     {func(c *Config) { c.Backoff = 0 }, "Backoff"},
		"max backoff": {func(c *Config) { c.MaxBackoff = 4 }, "MaxBackoff"},
		"rand":        {func(c *Config) { c.Rand = nil }, "Rand"},
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
	own := Contribution{Site: "b", Offered: 5, Wanted: 5}
	value := &Value{Contributions: []Contribution{own}, Policy: "even"}
	b1, a1 := Ballot{1, "b"}, Ballot{1, "a"}
	for name, m := range map[string]Message{
		"no kind":               {},
		"unknown kind":          {Kind: CatchUp + 1, Instance: 1},
		"from itself":           {Kind: Applied, From: "a"},
		"from a stranger":       {Kind: Applied, From: "z"},
		"to somebody else":      {Kind: Applied, To: "c"},
		"no instance":           {Kind: Election, Ballot: b1},
		"huge instance":         {Kind: Election, Instance: MaxNumber + 1, Ballot: b1},
		"huge ballot":           {Kind: Election, Instance: 1, Ballot: Ballot{MaxNumber + 1, "b"}},
		"no ballot":             {Kind: Election, Instance: 1},
		"another's ballot":      {Kind: Election, Instance: 1, Ballot: a1},
		"unknown press":         {Kind: Election, Instance: 1, Ballot: b1, Press: 9},
		"accept without value":  {Kind: Accept, Instance: 1, Ballot: b1},
		"decision, no value":    {Kind: Decision, Instance: 1},
		"value with a stranger": {Kind: Decision, Instance: 1, Value: &Value{Policy: "even", Contributions: []Contribution{{Site: "z"}}}},
		"value out of order":    {Kind: Decision, Instance: 1, Value: &Value{Contributions: []Contribution{own, {Site: "a"}}}},
		"value with duplicates": {Kind: Decision, Instance: 1, Value: &Value{Contributions: []Contribution{own, own}}},
		"negative want":         {Kind: Decision, Instance: 1, Value: &Value{Contributions: []Contribution{{Site: "b", Wanted: -1}}}},
		"queued above wanted":   {Kind: Decision, Instance: 1, Value: &Value{Contributions: []Contribution{{Site: "b", Queued: 1}}}},
		"another's offer":       {Kind: ElectionOk, Instance: 1, Ballot: a1, Contribution: &Contribution{Site: "c"}},
		"value, no ballot":      {Kind: ElectionOk, Instance: 1, Ballot: a1, Value: value},
		"ballot, no value":      {Kind: ElectionOk, Instance: 1, Ballot: a1, AcceptedAt: a1},
		"accepted above":        {Kind: ElectionOk, Instance: 1, Ballot: a1, Value: value, AcceptedAt: Ballot{2, "b"}},
		"accepted at stranger":  {Kind: ElectionOk, Instance: 1, Ballot: Ballot{2, "a"}, Value: value, AcceptedAt: Ballot{1, "z"}},
		"refusal not above":     {Kind: Refuse, Instance: 1, Ballot: a1, Promised: a1},
		"refusal of a stranger": {Kind: Refuse, Instance: 1, Ballot: a1, Promised: Ballot{9, "z"}},
		"kept out of order":     {Kind: CatchUp, Applied: 1, Kept: []Kept{{"b", 1, *value}, {"b", 1, *value}}},
		"kept from the future":  {Kind: CatchUp, Applied: 1, Kept: []Kept{{"b", 2, *value}}},
		"kept without its peer": {Kind: CatchUp, Applied: 1, Kept: []Kept{{"c", 1, *value}}},
		"kept for a stranger":   {Kind: CatchUp, Applied: 1, Kept: []Kept{{"z", 1, Value{Contributions: []Contribution{{Site: "z"}}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := trio(t)
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
			if out.Persist || out.Messages != nil || out.Applied != nil || n.b.left != 100 || n.m.State().Applied != 0 || n.m.Open() {
				t.Errorf("it had an effect: %+v, %+v", out, n.m.State())
			}
		})
	}
}

// TestSingleMember: a site alone decides in the step that begins.
func TestSingleMember(t *testing.T) {
	c := newCluster(map[SiteID]Tokens{"a": 100}, func(SiteID) Rand { return least{} })
	out := c.step(c.nodes[0], Input{Begin: &Proposal{Change: []byte("-40")}})
	if !out.Persist || len(out.Applied) != 1 || len(out.Messages) != 0 {
		t.Fatalf("Begin = %+v, want it decided", out)
	}
	if n := c.nodes[0]; n.m.Open() || n.b.left != 60 || n.b.limit != 60 {
		t.Errorf("left %d of %d, open %v", n.b.left, n.b.limit, n.m.Open())
	}
	if at, ok := c.nodes[0].m.WakeAt(); ok {
		t.Errorf("wants a wake at %d", at)
	}
}

// TestUnacceptableProposal: a leader does not build a value that its own ledger would not
// apply, and gives back the tokens that it set aside for it.
func TestUnacceptableProposal(t *testing.T) {
	s := trio(t)
	a := s.node("a")
	s.settle(a, Input{Begin: &Proposal{Policy: "whim"}})
	var last Output
	for len(s.net) > 0 {
		m := s.net[0]
		s.net = s.net[1:]
		out := s.settle(s.node(m.To), Input{Receive: &m})
		if out.Failed != FailedNot {
			last = out
		}
	}
	if last.Failed != FailedUnacceptable || !errors.Is(last.Err, errUnacceptable) || !errors.Is(last.Err, errPolicy) {
		t.Errorf("Failed = %v, Err = %v", last.Failed, last.Err)
	}
	for _, n := range s.nodes {
		if n.m.State().Pledge != nil || n.b.left != 100 || n.m.Open() {
			t.Errorf("%s: left %d, %+v", n.id, n.b.left, n.m.State())
		}
	}
}

// TestUnacceptableValue: a cohort neither accepts nor applies a value that its ledger
// would not apply, but does not hold up the others.
func TestUnacceptableValue(t *testing.T) {
	s := trio(t)
	v := &Value{Contributions: []Contribution{{Site: "b", Offered: 1, Wanted: 1}}, Policy: "whim"}
	for _, m := range []Message{
		{Kind: Accept, From: "b", To: "a", Instance: 1, Ballot: Ballot{1, "b"}, Value: v},
		{Kind: Decision, From: "b", To: "a", Instance: 1, Value: v},
	} {
		out := s.node("a").m.Step(1, Input{Receive: &m})
		if !errors.Is(out.Err, errUnacceptable) || out.Persist || out.Messages != nil || out.Applied != nil {
			t.Errorf("%v: %+v, want errUnacceptable and no effect", m.Kind, out)
		}
	}
}

// TestForeignPledge: a decided value with a contribution that this site never pledged is
// a sign of a rolled back disk. It is reported and not applied.
func TestForeignPledge(t *testing.T) {
	v := &Value{Contributions: []Contribution{{Site: "a", Offered: 7, Wanted: 7}}, Policy: "even"}
	for _, m := range []Message{
		{Kind: Decision, From: "b", To: "a", Instance: 1, Value: v},
		{Kind: Accept, From: "b", To: "a", Instance: 1, Ballot: Ballot{1, "b"}, Value: v},
		{Kind: CatchUp, From: "b", To: "a", Applied: 3, Kept: []Kept{{"a", 1, *v}}, Snapshot: []byte("300")},
		{Kind: CatchUp, From: "b", To: "a", Applied: 3, Kept: []Kept{{"a", 2, *v}}, Snapshot: []byte("300")},
	} {
		s := trio(t)
		out := s.node("a").m.Step(1, Input{Receive: &m})
		if _, ok := errors.AsType[*violationError](out.Err); !ok || out.Persist || out.Applied != nil {
			t.Errorf("%v: %+v, want a violationError and nothing applied", m.Kind, out)
		}
	}
}

// TestInstallFails: a snapshot that the ledger cannot read leaves the site where it was.
func TestInstallFails(t *testing.T) {
	s := trio(t)
	a := s.node("a")
	s.settle(a, Input{Receive: &Message{Kind: Election, From: "b", To: "a", Instance: 1, Ballot: Ballot{1, "b"}}})
	out := a.m.Step(1, Input{Receive: &Message{Kind: CatchUp, From: "b", To: "a", Applied: 3, Snapshot: []byte("?")}})
	if out.Err == nil || out.Persist || a.m.State().Applied != 0 || a.m.State().Pledge == nil {
		t.Errorf("%+v, %+v", out, a.m.State())
	}
}

// TestReachable: with the failure detector's word that a member is down, a leader does
// not sit out its window for it.
func TestReachable(t *testing.T) {
	s := trio(t)
	a := s.node("a")
	a.cfg.Reachable = func(site SiteID) bool { return site != "c" }
	s.settle(a, Input{Begin: &Proposal{}})
	s.net = slices.DeleteFunc(s.net, func(m Message) bool { return m.To == "c" })
	for len(s.net) > 0 {
		m := s.net[0]
		s.net = s.net[1:]
		s.settle(s.node(m.To), Input{Receive: &m})
	}
	if a.m.State().Applied != 1 {
		t.Errorf("not decided without c: %+v", a.m.State())
	}
}

// TestBeginJoins: proposals meet an instance under way and join it, whoever leads.
func TestBeginJoins(t *testing.T) {
	s := trio(t)
	a, b := s.node("a"), s.node("b")
	if a.m.Open() {
		t.Fatal("open before it began")
	}
	s.settle(a, Input{Begin: &Proposal{}})
	if out := s.step(a, Input{Begin: &Proposal{}}); out.Messages != nil || out.Persist {
		t.Errorf("a leader that begins again: %+v", out)
	}
	m := s.net[0]
	s.settle(s.node(m.To), Input{Receive: &m})
	if !b.m.Open() {
		t.Error("a pledged site is not open")
	}
	if out := s.step(b, Input{Begin: &Proposal{}}); out.Messages != nil || out.Persist {
		t.Errorf("a cohort that begins: %+v", out)
	}
}

// TestIdleMachineIsSmall: a hundred thousand idle machines have to fit.
func TestIdleMachineIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Machine{}); size > 400 {
		t.Errorf("a Machine takes %d bytes, want at most 400", size)
	}
}

func TestStateValidate(t *testing.T) {
	pledge := &Contribution{Site: "a"}
	for name, s := range map[string]State{
		"accepted without ballot": {Accepted: &Value{}},
		"promise below accept":    {Accepted: &Value{}, AcceptedAt: Ballot{2, "a"}, Promised: Ballot{1, "a"}},
		"pledge not exposed":      {Pledge: pledge},
		"exposed without pledge":  {Promised: Ballot{1, "b"}, Exposures: []Ballot{{1, "b"}}},
		"exposed above promise":   {Pledge: pledge, Exposures: []Ballot{{1, "b"}}},
		"exposures out of order":  {Pledge: pledge, Promised: Ballot{9, "c"}, Exposures: []Ballot{{1, "c"}, {1, "b"}}},
		"kept beyond applied":     {Applied: 1, Kept: []Kept{{Peer: "b", Instance: 2}}},
		"kept twice":              {Applied: 1, Kept: []Kept{{Peer: "b", Instance: 1}, {Peer: "b", Instance: 1}}},
	} {
		if s.Validate() == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := new(State).Validate(); err != nil {
		t.Error(err)
	}
}

func TestExposures(t *testing.T) {
	var s State
	for _, b := range []Ballot{{3, "b"}, {1, "c"}, {4, "b"}, {6, "b"}, {5, "b"}, {2, "a"}} {
		s.expose(b)
	}
	if want := []Ballot{{2, "a"}, {3, "b"}, {6, "b"}, {1, "c"}}; !slices.Equal(s.Exposures, want) {
		t.Fatalf("Exposures = %v, want %v", s.Exposures, want)
	}
	for _, b := range []Ballot{{3, "b"}, {5, "b"}, {1, "a"}, {9, "d"}} {
		if s.abandoned(b) {
			t.Errorf("abandoning %v ended an exposure", b)
		}
	}
	for _, b := range []Ballot{{6, "b"}, {3, "b"}, {1, "a"}, {3, "a"}} {
		if s.leftOut(b) {
			t.Errorf("a value at %v ended an exposure", b)
		}
	}
	if !s.leftOut(Ballot{2, "a"}) || !s.abandoned(Ballot{6, "b"}) || !s.abandoned(Ballot{7, "c"}) || len(s.Exposures) != 0 {
		t.Errorf("left over: %v", s.Exposures)
	}
}

func TestStateCloneIsDeep(t *testing.T) {
	s := State{
		Accepted:  &Value{Contributions: []Contribution{{Site: "a"}}, Change: []byte("x")},
		Pledge:    &Contribution{Site: "a"},
		Exposures: []Ballot{{1, "a"}},
		Kept:      []Kept{{Peer: "b", Instance: 1, Value: Value{Contributions: []Contribution{{Site: "b"}}}}},
	}
	c := s.Clone()
	c.Accepted.Contributions[0].Offered, c.Accepted.Change[0] = 9, 'y'
	c.Pledge.Offered, c.Exposures[0].Number, c.Kept[0].Value.Contributions[0].Offered = 9, 9, 9
	if s.Accepted.Contributions[0].Offered != 0 || s.Accepted.Change[0] != 'x' || s.Pledge.Offered != 0 ||
		s.Exposures[0].Number != 1 || s.Kept[0].Value.Contributions[0].Offered != 0 {
		t.Errorf("a change of the clone changed the original: %+v", s)
	}
}

// TestZeroState: a State is zero only if all its fields are.
func TestZeroState(t *testing.T) {
	if !new(State).IsZero() {
		t.Error("the zero State is not")
	}
	for i := range reflect.TypeFor[State]().NumField() {
		var s State
		f := reflect.ValueOf(&s).Elem().Field(i)
		switch f.Kind() {
		case reflect.Uint64:
			f.SetUint(1)
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		default:
			f.Set(reflect.ValueOf(Ballot{Number: 1, Site: "a"}))
		}
		if s.IsZero() {
			t.Errorf("zero with %s", reflect.TypeFor[State]().Field(i).Name)
		}
	}
}

// TestFingerprintTellsContributions: contributions that differ in any field have
// different fingerprints, and so have values with different contributions.
func TestFingerprintTellsContributions(t *testing.T) {
	seen := map[string]string{string((*Contribution)(nil).Fingerprint(nil)): "none"}
	same := reflect.TypeFor[Contribution]()
	for i := range same.NumField() {
		var c Contribution
		if f := reflect.ValueOf(&c).Elem().Field(i); f.Kind() == reflect.String {
			f.SetString("b")
		} else {
			f.SetInt(7)
		}
		for _, told := range [][]byte{c.Fingerprint(nil), (&Value{Contributions: []Contribution{c}}).Fingerprint(nil)} {
			if other, twice := seen[string(told)]; twice {
				t.Errorf("%s has the fingerprint of %s", same.Field(i).Name, other)
			}
			seen[string(told)] = same.Field(i).Name
		}
	}
}
