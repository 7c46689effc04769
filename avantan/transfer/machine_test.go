package transfer

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
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
		return &Config{Self: "b", Members: []SiteID{"a", "b"}, Window: 10, Backoff: 5, MaxBackoff: 50, Rand: least{}}
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
		"backoff":          {func(c *Config) { c.Backoff = 0 }, "Backoff"},
		"max backoff":      {func(c *Config) { c.MaxBackoff = 4 }, "MaxBackoff"},
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

func TestStateValidate(t *testing.T) {
	good := func() *State {
		return &State{
			Reserved: 32,
			Debits:   []Debit{{"b", 3, 2, 7}, {"c", 1, 0, 0}},
			Credits:  []Credit{{"b", 1}, {"c", 4}},
		}
	}
	if err := good().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*State){
		"huge Reserved":         func(s *State) { s.Reserved = maxReserved + 1 },
		"too many debits":       func(s *State) { s.Debits = make([]Debit, avantan.MaxMembers+1) },
		"too many credits":      func(s *State) { s.Credits = make([]Credit, avantan.MaxMembers+1) },
		"debits not sorted":     func(s *State) { slices.Reverse(s.Debits) },
		"credits not sorted":    func(s *State) { slices.Reverse(s.Credits) },
		"debit of nobody":       func(s *State) { s.Debits[0].Receiver = "" },
		"debit never asked":     func(s *State) { s.Debits[1].Asked = 0 },
		"debit above asked":     func(s *State) { s.Debits[0].Seq = 4 },
		"huge ask":              func(s *State) { s.Debits[0].Asked = avantan.MaxNumber + 1 },
		"amount below zero":     func(s *State) { s.Debits[0].Amount = -1 },
		"amount of no transfer": func(s *State) { s.Debits[1].Amount = 1 },
		"sum":                   func(s *State) { s.Debits[0].Amount, s.Debits[1] = math.MaxInt64, Debit{"c", 1, 1, 1} },
		"credit of nobody":      func(s *State) { s.Credits[0].Donor = "" },
		"credit of nothing":     func(s *State) { s.Credits[0].Seq = 0 },
		"huge credit":           func(s *State) { s.Credits[1].Seq = avantan.MaxNumber + 1 },
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
	c.Debits[0].Amount, c.Credits[0].Seq = 9, 9
	if s.Debits[0].Amount != 7 || s.Credits[0].Seq != 1 {
		t.Error("a clone shares its lists")
	}
	if s.InFlight() != 7 {
		t.Errorf("InFlight() = %d, want 7", s.InFlight())
	}
}

// TestRefusedMessages: a message that is malformed, from a stranger, for somebody else or
// impossible has no effect at all.
func TestRefusedMessages(t *testing.T) {
	const huge = avantan.MaxNumber + 1
	for name, test := range map[string]struct {
		m         Message
		violation bool
	}{
		"no kind":                    {m: Message{Ask: 1}},
		"unknown kind":               {m: Message{Kind: Ack + 1, Seq: 1}},
		"from itself":                {m: Message{Kind: Ack, From: "a", Seq: 1}},
		"from nobody":                {m: Message{Kind: Ack, From: "-", Seq: 1}},
		"from a stranger":            {m: Message{Kind: Ack, From: "z", Seq: 1}},
		"to somebody else":           {m: Message{Kind: Ack, To: "c", Seq: 1}},
		"ask without number":         {m: Message{Kind: Ask, Amount: 1}},
		"ask with a huge number":     {m: Message{Kind: Ask, Ask: huge, Amount: 1}},
		"ask for nothing":            {m: Message{Kind: Ask, Ask: 1}},
		"ask for less than nothing":  {m: Message{Kind: Ask, Ask: 1, Amount: -1}},
		"ask with a huge seq":        {m: Message{Kind: Ask, Ask: 1, Amount: 1, Seq: huge}},
		"ask with left":              {m: Message{Kind: Ask, Ask: 1, Amount: 1, Left: 1}},
		"transfer without ask":       {m: Message{Kind: Transfer, Seq: 1, Amount: 1}},
		"transfer without seq":       {m: Message{Kind: Transfer, Ask: 1, Amount: 1}},
		"transfer of nothing":        {m: Message{Kind: Transfer, Ask: 1, Seq: 1}},
		"transfer of less":           {m: Message{Kind: Transfer, Ask: 1, Seq: 1, Amount: -1}},
		"transfer beyond its ask":    {m: Message{Kind: Transfer, Ask: 1, Seq: 2, Amount: 1}},
		"refuse without ask":         {m: Message{Kind: Refuse}},
		"refuse with seq":            {m: Message{Kind: Refuse, Ask: 1, Seq: 1}},
		"refuse with amount":         {m: Message{Kind: Refuse, Ask: 1, Amount: 1}},
		"refuse with less":           {m: Message{Kind: Refuse, Ask: 1, Amount: -1}},
		"ack of nothing":             {m: Message{Kind: Ack}},
		"ack with ask":               {m: Message{Kind: Ack, Ask: 1, Seq: 1}},
		"ack with a huge seq":        {m: Message{Kind: Ack, Seq: huge}},
		"ack never given":            {m: Message{Kind: Ack, Seq: 1}, violation: true},
		"ask that has what is not":   {m: Message{Kind: Ask, Ask: 1, Seq: 1, Amount: 1}, violation: true},
		"transfer never asked for":   {m: Message{Kind: Transfer, Ask: 2, Seq: 1, Amount: 1}, violation: true},
		"refusal of what is not":     {m: Message{Kind: Refuse, Ask: 2}, violation: true},
		"transfer with one left out": {m: Message{Kind: Transfer, Ask: 2, Seq: 2, Amount: 1}, violation: true},
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
			c := sites(map[SiteID]Tokens{"a": 100, "b": 100, "c": 100})
			n := c.node("a")
			if name == "transfer with one left out" {
				n.m.next = 3
			}
			out := n.m.Step(1, Input{Receive: &m})
			if v, ok := errors.AsType[*violationError](out.Err); ok != test.violation || ok && v.Peer != "b" {
				t.Errorf("Err = %v, a violation: %v", out.Err, test.violation)
			}
			if errors.Is(out.Err, errMessage) == test.violation {
				t.Errorf("Err = %v", out.Err)
			}
			st := n.m.State()
			if out.Persist || out.Messages != nil || out.Ended != nil || n.b.left != 100 || len(st.Debits)+len(st.Credits) > 0 {
				t.Errorf("it had an effect: %+v, %+v", out, st)
			}
		})
	}
}

func TestRefusedProposals(t *testing.T) {
	good := func() *Proposal { return &Proposal{Need: 5, Donors: []Donor{{"b", 1}, {"c", -4}}} }
	for name, change := range map[string]func(*Proposal){
		"no need":  func(p *Proposal) { p.Need = 0 },
		"twice":    func(p *Proposal) { p.Donors[1].Site = "b" },
		"itself":   func(p *Proposal) { p.Donors[0].Site = "a" },
		"stranger": func(p *Proposal) { p.Donors[1].Site = "z" },
		"sum":      func(p *Proposal) { p.Donors[0].Left, p.Donors[1].Left = math.MaxInt64, 1 },
	} {
		t.Run(name, func(t *testing.T) {
			n := sites(map[SiteID]Tokens{"a": 0, "b": 9, "c": 9}).node("a")
			p := good()
			change(p)
			if out := n.m.Step(1, Input{Begin: p}); !errors.Is(out.Err, errProposal) || out.Messages != nil || out.Persist || n.m.Open() {
				t.Errorf("%+v: %+v", *p, out)
			}
			if out := n.m.Step(1, Input{Begin: good()}); out.Err != nil || !n.m.Open() {
				t.Fatalf("%+v", out)
			}
			if out := n.m.Step(1, Input{Begin: good()}); !errors.Is(out.Err, errOpen) || out.Messages != nil || out.Persist {
				t.Errorf("a second round: %+v", out)
			}
		})
	}
}

// TestReserved: numbers are reserved in blocks, so a round in 32 waits for a disk.
func TestReserved(t *testing.T) {
	n := sites(map[SiteID]Tokens{"a": 0, "b": 9}).node("a")
	persists := 0
	for range 3 * block {
		out := n.m.Step(0, Input{Begin: &Proposal{Need: 1, Donors: []Donor{{"b", 1}}}})
		if out.Err != nil || len(out.Messages) != 1 {
			t.Fatalf("%+v", out)
		}
		if out.Persist {
			persists++
		}
		n.m.Step(0, Input{Receive: &Message{Kind: Refuse, From: "b", To: "a", Ask: out.Messages[0].Ask}})
	}
	if persists != 3 || n.m.State().Reserved != 3*block {
		t.Errorf("%d transactions, %+v", persists, *n.m.State())
	}
}

// TestSums: the tokens under way, and the tokens that a round has got, stay within 64
// bits.
func TestSums(t *testing.T) {
	const most = math.MaxInt64
	c := sites(map[SiteID]Tokens{"a": 10, "b": 0, "c": 0})
	n := c.node("a")
	m := New(n.cfg, n.b, State{Debits: []Debit{{"c", 1, 1, most - 4}}})
	out := m.Step(0, Input{Receive: &Message{Kind: Ask, From: "b", To: "a", Ask: 1, Amount: 5}})
	if len(out.Messages) != 1 || out.Messages[0].Kind != Refuse || out.Messages[0].Left != 10 || n.b.left != 10 || out.Persist {
		t.Errorf("5 above what fits: %+v, left %d", out, n.b.left)
	}
	out = m.Step(0, Input{Receive: &Message{Kind: Ask, From: "b", To: "a", Ask: 2, Amount: 4}})
	if len(out.Messages) != 1 || out.Messages[0].Amount != 4 || n.b.left != 6 {
		t.Errorf("4 that fit: %+v, left %d", out, n.b.left)
	}

	n.m.Step(0, Input{Begin: &Proposal{Need: most, Donors: []Donor{{"b", 1}, {"c", 1}}}})
	for _, donor := range []SiteID{"b", "c"} {
		n.b.left = 0
		out = n.m.Step(0, Input{Receive: &Message{Kind: Transfer, From: donor, To: "a", Ask: 1, Seq: 1, Amount: most - 1}})
	}
	if want := (Result{Asked: most, Got: most, Satisfied: true}); out.Ended == nil || *out.Ended != want {
		t.Errorf("%+v, want %+v", out.Ended, want)
	}
}

// TestBackoff: a receiver that stays away is sent its tokens again and again, ever more
// rarely, and they stay under way.
func TestBackoff(t *testing.T) {
	c := sites(map[SiteID]Tokens{"a": 0, "b": 9})
	b := c.node("b")
	b.m.Step(0, Input{Receive: &Message{Kind: Ask, From: "a", To: "b", Ask: 1, Amount: 4}})
	var waits []Tick
	for now := Tick(0); len(waits) < 8; {
		at, ok := b.m.WakeAt()
		if !ok {
			t.Fatal("it has given up")
		}
		if out := b.m.Step(at-1, Input{}); out.Messages != nil {
			t.Fatalf("too early: %+v", out)
		}
		if out := b.m.Step(at, Input{}); len(out.Messages) != 1 || out.Persist {
			t.Fatalf("%+v", out)
		}
		waits = append(waits, at-now)
		now = at
	}
	if want := []Tick{25, 50, 100, 200, 400, 500, 500, 500}; !slices.Equal(waits, want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
	if b.m.State().InFlight() != 4 || b.b.left != 5 {
		t.Errorf("%+v, left %d", *b.m.State(), b.b.left)
	}
}

func TestShare(t *testing.T) {
	const most = math.MaxInt64
	for _, test := range []struct{ ask, left, target, want Tokens }{
		{10, 100, 50, 10},
		{50, 100, 50, 50},
		{51, 100, 50, 50}, // 100·51/101
		{100, 100, 50, 66},
		{100, 100, 0, 100},
		{100, 40, -7, 40},
		{1, 1, most, 1},
		{1, 0, 0, 0},
		{1, -5, 0, 0},
		{most, most, most, most / 2},
		{most, most, 0, most},
		{most, 1, most, 1},
	} {
		if got := share(test.ask, test.left, test.target); got != test.want {
			t.Errorf("share(%d, %d, %d) = %d, want %d", test.ask, test.left, test.target, got, test.want)
		}
	}
}

// Sizes that are near the bounds as often as they are small.
func anyTokens(r *rand.Rand) Tokens {
	n := Tokens(r.Uint64() >> (1 + r.IntN(63)))
	if r.IntN(8) == 0 {
		n = math.MaxInt64 - n%3
	}
	return n
}

// TestShareProperties: a donor gives no more than was asked or than it has, and something
// if it has anything. It leaves itself its target or its part of the split.
func TestShareProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		ask, left, target := max(anyTokens(r), 1), anyTokens(r), anyTokens(r)
		got := share(ask, left, target)
		if got < 0 || got > ask || got > left || got == 0 && left > 0 {
			t.Fatalf("share(%d, %d, %d) = %d", ask, left, target, got)
		}
		if got < ask && left-got < target {
			// got/left is at most ask/(ask+target), but for the least of 1.
			mine := new(big.Int).Mul(big.NewInt(int64(got)), new(big.Int).Add(big.NewInt(int64(ask)), big.NewInt(int64(target))))
			if got > 1 && mine.Cmp(new(big.Int).Mul(big.NewInt(int64(left)), big.NewInt(int64(ask)))) > 0 {
				t.Fatalf("share(%d, %d, %d) = %d is more than its part", ask, left, target, got)
			}
		}
		if got == ask && ask > 1 && left-got < target {
			t.Fatalf("share(%d, %d, %d) = %d leaves less than the target", ask, left, target, got)
		}
	}
}

func TestDivideProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		need := max(anyTokens(r), 1)
		var donors []Donor
		var total Tokens
		for range r.IntN(6) {
			left := anyTokens(r) >> 3
			if r.IntN(4) == 0 {
				left = -left
			}
			donors = append(donors, Donor{Left: left})
			total += max(left, 0)
		}
		parts := divide(need, donors)
		if (parts == nil) != (total == 0) {
			t.Fatalf("divide(%d, %v) = %v", need, donors, parts)
		}
		var sum Tokens
		for i, p := range parts {
			sum += p
			exact := new(big.Int).Mul(big.NewInt(int64(need)), big.NewInt(int64(max(donors[i].Left, 0))))
			exact.Div(exact, big.NewInt(int64(total)))
			if d := p - Tokens(exact.Int64()); d < 0 || d > 1 || p > 0 && donors[i].Left <= 0 {
				t.Fatalf("divide(%d, %v)[%d] = %d, in proportion %v", need, donors, i, p, exact)
			}
		}
		if parts != nil && sum != need {
			t.Fatalf("divide(%d, %v) = %v, sum %d", need, donors, parts, sum)
		}
	}
}
