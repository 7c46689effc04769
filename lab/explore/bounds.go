package explore

import (
	"fmt"
	"slices"
)

// Bounds limit a search. Everything within them is searched: any order of delivery, any
// number of deliveries, any loss.
type Bounds struct {
	// Instances is how many redistributions may follow each other.
	Instances int `json:"instances"`
	// Leaders is how many sites may lead, the first in order.
	Leaders int `json:"leaders"`
	// Ballots is how many ballots (majority) or counters (star) each leader may
	// use in an instance.
	Ballots int `json:"ballots"`
	// Crashes is how many crashes there may be in all, at any site.
	Crashes int `json:"crashes"`
	// Acquires and Releases are how many acquires and releases clients may send in all.
	Acquires int `json:"acquires"`
	Releases int `json:"releases"`
	// Anywhere lets clients go to any site: otherwise they acquire at the first
	// and release at the last.
	Anywhere bool `json:"anywhere"`
	// Tokens is how many tokens each site starts with; the limit is three times as many.
	// The any-subset variant adds more to each site.
	Tokens int64 `json:"tokens"`
	// Losses is how many sites may be written off: none or one, any of the sites.
	Losses int `json:"losses,omitempty"`
	// View is the change of the view that the first site proposes: JoinView begins without
	// the last site and adds it, LeaveView takes it out; empty for none. Majority only.
	View string `json:"view,omitempty"`
	// Plain leaves out the reductions that rest on the protocol (see the package
	// comment), for far more states and the same finding.
	Plain bool `json:"plain"`
}

// The changes of the view.
const (
	JoinView  = "join"
	LeaveView = "leave"
	// DrainView is LeaveView, and the last site hands all it has to the second.
	DrainView = "drain"
)

// named are the bounds with a name, smallest first.
var named = []struct {
	name   string
	bounds Bounds
}{
	{"small", Bounds{Instances: 1, Leaders: 2, Ballots: 1, Crashes: 1, Acquires: 1, Releases: 1, Tokens: 2}},
	{"sequence", Bounds{Instances: 2, Leaders: 1, Ballots: 2, Crashes: 1, Acquires: 1, Releases: 1, Tokens: 2}},
	{"default", Bounds{Instances: 1, Leaders: 2, Ballots: 2, Crashes: 1, Acquires: 1, Releases: 1, Tokens: 2}},
	{JoinView, Bounds{Instances: 2, Leaders: 1, Ballots: 2, Crashes: 1, Acquires: 1, Releases: 1, Tokens: 2, View: JoinView}},
	{LeaveView, Bounds{Instances: 2, Leaders: 1, Ballots: 2, Crashes: 1, Acquires: 1, Releases: 1, Tokens: 2, View: LeaveView}},
	{DrainView, Bounds{Instances: 1, Leaders: 1, Ballots: 1, Crashes: 1, Acquires: 1, Releases: 1, Anywhere: true, Tokens: 2, View: DrainView}},
	{"loss", Bounds{Instances: 2, Leaders: 1, Ballots: 1, Crashes: 1, Acquires: 1, Releases: 1, Tokens: 2, Losses: 1}},
	{"large", Bounds{Instances: 1, Leaders: 2, Ballots: 2, Crashes: 2, Acquires: 1, Releases: 1, Tokens: 2}},
}

// BoundsByName returns the bounds that go by a name.
func BoundsByName(name string) (Bounds, error) {
	for _, n := range named {
		if n.name == name {
			return n.bounds, nil
		}
	}
	return Bounds{}, fmt.Errorf("unknown bounds %q, must be one of %v", name, BoundsNames())
}

// variants are the protocols that can be searched.
var variants = []struct {
	name string
	make func(Bounds) Variant
}{
	{"majority", func(b Bounds) Variant { return NewMajority(b) }},
	{"star", func(b Bounds) Variant { return NewStar(b) }},
	{"transfer", func(b Bounds) Variant { return NewTransfer(b) }},
}

// Variants returns the names that New knows.
func Variants() []string {
	var names []string
	for _, v := range variants {
		names = append(names, v.name)
	}
	return names
}

// New returns a variant by name. The bounds must be valid.
func New(name string, b Bounds) (Variant, error) {
	for _, v := range variants {
		if v.name == name {
			return v.make(b), nil
		}
	}
	return nil, fmt.Errorf("unknown variant %q, must be one of %v", name, Variants())
}

// BoundsNames returns the names of bounds, smallest first.
func BoundsNames() []string {
	var names []string
	for _, n := range named {
		names = append(names, n.name)
	}
	return slices.Clip(names)
}

// Validate reports the first field that is out of its range.
func (b Bounds) Validate() error {
	for _, f := range []struct {
		name               string
		value, least, most int64
	}{
		{"instances", int64(b.Instances), 1, 3},
		{"leaders", int64(b.Leaders), 1, Sites},
		{"ballots", int64(b.Ballots), 1, 3},
		{"crashes", int64(b.Crashes), 0, 3},
		{"acquires", int64(b.Acquires), 0, 3},
		{"releases", int64(b.Releases), 0, 3},
		{"tokens", b.Tokens, 0, 9},
		{"losses", int64(b.Losses), 0, 1},
	} {
		if f.value < f.least || f.value > f.most {
			return fmt.Errorf("%s is %d, must be %d to %d", f.name, f.value, f.least, f.most)
		}
	}
	if views := []string{"", JoinView, LeaveView, DrainView}; !slices.Contains(views, b.View) {
		return fmt.Errorf("view is %q, must be one of %q", b.View, views)
	}
	if b.View != "" && b.Losses > 0 {
		return fmt.Errorf("losses is %d, must be 0 with the view %q", b.Losses, b.View)
	}
	return nil
}
