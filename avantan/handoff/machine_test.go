package handoff

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/samya-db/samya/avantan"
)

func sites(left map[SiteID]Tokens) *cluster {
	return newCluster(left, func(SiteID) avantan.Rand { return least{} })
}

func TestConfigValidate(t *testing.T) {
	good := func() *Config {
		return &Config{Self: "b", MaxItems: MaxItems, Backoff: 5, MaxBackoff: 50, Rand: least{}}
	}
	if err := good().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"Self":       func(c *Config) { c.Self = "" },
		"MaxItems":   func(c *Config) { c.MaxItems = MaxItems + 1 },
		"MaxItems 0": func(c *Config) { c.MaxItems = 0 },
		"Backoff":    func(c *Config) { c.Backoff = 0 },
		"MaxBackoff": func(c *Config) { c.MaxBackoff = 4 },
		"Rand":       func(c *Config) { c.Rand = nil },
	} {
		t.Run(name, func(t *testing.T) {
			c := good()
			change(c)
			if err := c.Validate(); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("Validate() = %v, want it to name %s", err, name)
			}
		})
	}
}

func item(data string, tokens Tokens) Item { return Item{Data: []byte(data), Tokens: tokens} }

func TestStateValidate(t *testing.T) {
	good := func() *State {
		return &State{
			Open:  &Bequest{Heir: "c", Number: 3, Estate: Estate{Left: 1, Net: -2, Items: []Item{item("x", 0)}}},
			Given: []Given{{"b", 1}, {"c", 3}},
			Taken: []Taken{{"b", 1}, {"d", 4}},
		}
	}
	if err := good().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*State){
		"too many given":       func(s *State) { s.Given = make([]Given, avantan.MaxMembers+1) },
		"too many taken":       func(s *State) { s.Taken = make([]Taken, avantan.MaxMembers+1) },
		"given not sorted":     func(s *State) { slices.Reverse(s.Given) },
		"taken not sorted":     func(s *State) { slices.Reverse(s.Taken) },
		"given to nobody":      func(s *State) { s.Given[0].Heir = "" },
		"nothing given":        func(s *State) { s.Given[0].Number = 0 },
		"huge given":           func(s *State) { s.Given[0].Number = avantan.MaxNumber + 1 },
		"taken of nobody":      func(s *State) { s.Taken[0].Leaver = "" },
		"nothing taken":        func(s *State) { s.Taken[0].Number = 0 },
		"huge taken":           func(s *State) { s.Taken[0].Number = avantan.MaxNumber + 1 },
		"open to a stranger":   func(s *State) { s.Open.Heir = "z" },
		"open without number":  func(s *State) { s.Open.Heir, s.Open.Number = "z", 0 },
		"open is not the last": func(s *State) { s.Open.Number = 2 },
		"open is empty":        func(s *State) { s.Open.Estate = Estate{} },
		"open has a fault":     func(s *State) { s.Open.Estate.Left = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			s := good()
			change(s)
			if err := s.Validate(); err == nil {
				t.Errorf("%+v is valid", *s)
			}
		})
	}
	s := good()
	c := s.Clone()
	c.Given[0].Number, c.Taken[0].Number, c.Open.Number, c.Open.Estate.Items[0].Tokens = 9, 9, 9, 9
	if string(s.Fingerprint(nil)) != string(new(*good()).Fingerprint(nil)) {
		t.Error("a clone shares its lists")
	}
}

// TestMoving: the bound covers a bequest that is taken and one that is not.
func TestMoving(t *testing.T) {
	for _, test := range []struct {
		e    Estate
		want Tokens
	}{
		{Estate{Left: 5}, 0},
		{Estate{Owed: 5}, 0},
		{Estate{Net: 5}, 5},
		{Estate{Net: -5}, 5},
		{Estate{Net: 5, Items: []Item{item("x", 2), item("y", 1)}}, 8},
		{Estate{Net: -5, Items: []Item{item("x", 2), item("y", 1)}}, 5},
		{Estate{Net: -2, Items: []Item{item("x", 2), item("y", 1)}}, 3},
	} {
		s := State{Open: &Bequest{Heir: "b", Number: 1, Estate: test.e}}
		if got := s.Moving(); got != test.want {
			t.Errorf("Moving() of %+v = %d, want %d", test.e, got, test.want)
		}
	}
	if got := new(State).Moving(); got != 0 {
		t.Errorf("Moving() = %d without a bequest", got)
	}
}

// TestRefusedMessages: a message that is malformed, for somebody else or impossible has
// no effect at all.
func TestRefusedMessages(t *testing.T) {
	const huge = avantan.MaxNumber + 1
	one := Estate{Left: 1}
	items := func(n int, data string, tokens Tokens) Estate {
		return Estate{Items: slices.Repeat([]Item{item(data, tokens)}, n)}
	}
	for name, test := range map[string]struct {
		m         Message
		violation bool
	}{
		"no kind":                      {m: Message{Number: 1}},
		"unknown kind":                 {m: Message{Kind: Ack + 1, Taken: 1}},
		"from itself":                  {m: Message{Kind: Ack, From: "a", Taken: 1}},
		"from nobody":                  {m: Message{Kind: Ack, From: "-", Taken: 1}},
		"to somebody else":             {m: Message{Kind: Ack, To: "c", Taken: 1}},
		"no number":                    {m: Message{Kind: Bequeath, Estate: one}},
		"huge number":                  {m: Message{Kind: Bequeath, Number: huge, Estate: one}},
		"ack without number":           {m: Message{Kind: Ack}},
		"ack with number":              {m: Message{Kind: Ack, Number: 1, Taken: 1}},
		"ack with a huge number":       {m: Message{Kind: Ack, Taken: huge}},
		"ack with estate":              {m: Message{Kind: Ack, Taken: 1, Estate: one}},
		"bequest that took too much":   {m: Message{Kind: Bequeath, Number: 2, Estate: one, Taken: 2}, violation: true},
		"bequest of nothing":           {m: Message{Kind: Bequeath, Number: 1}},
		"left below zero":              {m: Message{Kind: Bequeath, Number: 1, Estate: Estate{Left: -1}}},
		"owed below zero":              {m: Message{Kind: Bequeath, Number: 1, Estate: Estate{Owed: -1}}},
		"left and owed":                {m: Message{Kind: Bequeath, Number: 1, Estate: Estate{Left: 1, Owed: 1}}},
		"net without opposite":         {m: Message{Kind: Bequeath, Number: 1, Estate: Estate{Net: math.MinInt64}}},
		"too many items":               {m: Message{Kind: Bequeath, Number: 1, Estate: items(MaxItems+1, "x", 1)}},
		"item without data":            {m: Message{Kind: Bequeath, Number: 1, Estate: items(1, "", 1)}},
		"item too large":               {m: Message{Kind: Bequeath, Number: 1, Estate: items(1, strings.Repeat("x", maxData+1), 1)}},
		"items too large":              {m: Message{Kind: Bequeath, Number: 1, Estate: items(maxBytes/maxData+1, strings.Repeat("x", maxData), 1)}},
		"item below zero":              {m: Message{Kind: Bequeath, Number: 1, Estate: items(1, "x", -1)}},
		"sum of items":                 {m: Message{Kind: Bequeath, Number: 1, Estate: items(2, "x", math.MaxInt64)}},
		"ack of what was never made":   {m: Message{Kind: Ack, Taken: 2}, violation: true},
		"ack of what it never got":     {m: Message{Kind: Ack, From: "c", Taken: 1}, violation: true},
		"bequest with one left out":    {m: Message{Kind: Bequeath, Number: 3, Estate: one}, violation: true},
		"first bequest with two ahead": {m: Message{Kind: Bequeath, From: "c", Number: 2, Estate: one}, violation: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := test.m
			switch m.From {
			case "":
				m.From = "b"
			case "-":
				m.From = ""
			}
			if m.To == "" {
				m.To = "a"
			}
			n := sites(map[SiteID]Tokens{"a": 100, "b": 100, "c": 100}).node("a")
			n.b.net = 10
			n.m.Step(1, Input{Receive: &Message{Kind: Bequeath, From: "b", To: "a", Number: 1, Estate: one}})
			n.m.Step(1, Input{Begin: "b"})
			before := n.m.State().Fingerprint(nil)
			out := n.m.Step(1, Input{Receive: &m})
			if v, ok := errors.AsType[*violationError](out.Err); ok != test.violation || ok && v.Peer != m.From {
				t.Errorf("Err = %v, a violation: %v", out.Err, test.violation)
			}
			if errors.Is(out.Err, errMessage) == test.violation {
				t.Errorf("Err = %v", out.Err)
			}
			if out.Persist || out.Messages != nil || out.Closed || n.b.left != 0 || n.b.net != 10 || string(n.m.State().Fingerprint(nil)) != string(before) {
				t.Errorf("it had an effect: %+v, %+v", out, n.m.State())
			}
		})
	}
}

// TestRefusedHeirs: a bequest that cannot begin leaves the books alone.
func TestRefusedHeirs(t *testing.T) {
	full := State{}
	for i := range avantan.MaxMembers {
		full.Given = append(full.Given, Given{SiteID(fmt.Sprintf("x%02d", i)), avantan.MaxNumber})
	}
	for name, test := range map[string]struct {
		st   State
		heir SiteID
		want error
	}{
		"itself":           {State{}, "a", errHeir},
		"one more":         {full, "b", errHeir},
		"no number":        {full, "x00", errHeir},
		"one after others": {State{Given: full.Given[1:]}, "b", nil},
	} {
		t.Run(name, func(t *testing.T) {
			n := sites(map[SiteID]Tokens{"a": 100, "b": 0}).node("a")
			m := New(n.cfg, n.b, test.st.Clone())
			out := m.Step(1, Input{Begin: test.heir})
			if !errors.Is(out.Err, test.want) || (test.want == nil) != out.Persist || (test.want == nil) != (n.b.left == 0) {
				t.Fatalf("%+v, left %d", out, n.b.left)
			}
			if test.want == nil {
				if out := m.Step(1, Input{Begin: "b"}); !errors.Is(out.Err, errOpen) || out.Persist || out.Messages != nil {
					t.Errorf("a second bequest: %+v", out)
				}
			}
		})
	}
}

// TestTooManyLeavers: a site remembers a bounded number of leavers, and takes nothing of
// others.
func TestTooManyLeavers(t *testing.T) {
	var st State
	for i := range avantan.MaxMembers {
		st.Taken = append(st.Taken, Taken{SiteID(fmt.Sprintf("x%02d", i)), 1})
	}
	n := sites(map[SiteID]Tokens{"a": 0, "b": 0}).node("a")
	m := New(n.cfg, n.b, st)
	late := &Message{Kind: Bequeath, From: "b", To: "a", Number: 1, Estate: Estate{Left: 5}}
	if out := m.Step(1, Input{Receive: late}); !errors.Is(out.Err, errUnacceptable) || out.Persist || out.Messages != nil || n.b.left != 0 {
		t.Errorf("%+v, left %d", out, n.b.left)
	}
	if out := m.Step(1, Input{Lost: "x00"}); out.Err != nil || !out.Persist || out.Closed {
		t.Errorf("%+v", out)
	}
	if out := m.Step(1, Input{Receive: late}); out.Err != nil || n.b.left != 5 {
		t.Errorf("%+v, left %d", out, n.b.left)
	}
}

// TestNoEmptyLists: a state without a pair, or a bequest without items, is as one that was
// read back: its lists are nil.
func TestNoEmptyLists(t *testing.T) {
	n := sites(map[SiteID]Tokens{"a": 5, "b": 0}).node("a")
	n.m.Step(0, Input{Receive: &Message{Kind: Bequeath, From: "b", To: "a", Number: 1, Estate: Estate{Left: 5}}})
	n.b.leases = []lease{}
	n.m.Step(0, Input{Begin: "b"})
	if st := n.m.State(); st.Open == nil || st.Open.Estate.Items != nil || st.Given == nil || st.Taken == nil {
		t.Fatalf("%#v", st)
	}
	n.m.Step(0, Input{Lost: "b"})
	if st := n.m.State(); !reflect.DeepEqual(*st, State{}) || !reflect.DeepEqual(st.Clone(), State{}) {
		t.Errorf("%#v", st)
	}
}

// TestBegin: the estate of a bequest follows from the holdings of the site.
func TestBegin(t *testing.T) {
	for _, test := range []struct {
		name      string
		left, net Tokens
		leases    []lease
		want      string
		// after are left and net while the bequest is open.
		afterLeft, afterNet Tokens
	}{
		{name: "nothing", want: ""},
		{name: "left", left: 5, want: " left=5"},
		{name: "debt", left: -5, want: " owed=5", afterLeft: -5},
		{name: "out", net: 5, want: " net=5", afterNet: 5},
		{name: "all", left: 5, net: 7, want: " left=5 net=7", afterNet: 7},
		{name: "below zero", left: 5, net: -2, want: " left=5 net=-2"},
		{name: "below zero by all", left: 2, net: -2, want: " left=2 net=-2"},
		{name: "below zero by more", left: 1, net: -2, want: " left=1 net=-2"},
		{name: "leases", net: 7, leases: []lease{{"x", 3}, {"y", 4}}, want: " x=3 y=4", afterNet: 7},
		{name: "leases and more", net: 9, leases: []lease{{"x", 3}, {"y", 4}}, want: " net=2 x=3 y=4", afterNet: 9},
		{name: "leases and less", left: 5, net: 6, leases: []lease{{"x", 3}, {"y", 4}}, want: " left=5 net=-1 x=3 y=4", afterNet: 7},
		{name: "leases of a later bequest", net: 9, leases: []lease{{"x", 3}, {"y", 4}, {"z", 1}}, want: " net=1 x=3 y=4", afterNet: 9},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := sites(map[SiteID]Tokens{"a": test.left, "b": 0}).node("a")
			n.b.net, n.b.leases = test.net, test.leases
			out := n.m.Step(1, Input{Begin: "b"})
			if out.Empty != (test.want == "") || out.Persist == out.Empty || n.m.Open() == out.Empty {
				t.Fatalf("%+v", out)
			}
			if out.Empty {
				return
			}
			if got := estate(&n.m.State().Open.Estate); got != test.want || n.b.left != test.afterLeft || n.b.net != test.afterNet {
				t.Errorf("bequest%s, left %d, net %d, want%s, %d, %d", got, n.b.left, n.b.net, test.want, test.afterLeft, test.afterNet)
			}
		})
	}
}

// TestBounded: a bequest takes along what fits, by number and by bytes.
func TestBounded(t *testing.T) {
	large := slices.Repeat([]Item{item(strings.Repeat("x", maxData), 1)}, maxBytes/maxData+1)
	small := slices.Repeat([]Item{item("x", 1)}, 9)
	for _, test := range []struct {
		items       []Item
		limit, want int
	}{
		{nil, 5, 0},
		{small, 8, 8},
		{small, 9, 9},
		{small, 10, 9},
		{large, MaxItems, len(large) - 1},
		{large[1:], MaxItems, len(large) - 1},
	} {
		if got := len(bounded(test.items, test.limit)); got != test.want {
			t.Errorf("%d of %d items, at most %d, want %d", got, len(test.items), test.limit, test.want)
		}
	}
}

// TestBackoff: a bequest to an heir that stays away is sent again and again, ever more
// rarely, and stays open.
func TestBackoff(t *testing.T) {
	n := sites(map[SiteID]Tokens{"a": 9, "b": 0}).node("a")
	n.m.Step(0, Input{Begin: "b"})
	var waits []Tick
	for now := Tick(0); len(waits) < 8; {
		at, ok := n.m.WakeAt()
		if !ok {
			t.Fatal("it has given up")
		}
		if out := n.m.Step(at-1, Input{}); out.Messages != nil {
			t.Fatalf("too early: %+v", out)
		}
		if out := n.m.Step(at, Input{}); len(out.Messages) != 1 || out.Persist {
			t.Fatalf("%+v", out)
		}
		waits = append(waits, at-now)
		now = at
	}
	if want := []Tick{25, 50, 100, 200, 400, 500, 500, 500}; !slices.Equal(waits, want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
	if n.b.left != 0 || !n.m.Open() {
		t.Errorf("%+v, left %d", *n.m.State(), n.b.left)
	}
	m := New(n.cfg, n.b, n.m.State().Clone())
	if at, ok := m.WakeAt(); at != 0 || !ok {
		t.Errorf("after a restart it wakes at %d: %v", at, ok)
	}
}
