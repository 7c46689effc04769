package samya

import (
	"fmt"
	"slices"
	"strings"

	"github.com/samya-db/samya/lab/replay"
	"github.com/samya-db/samya/lab/replay/sites"
	"github.com/samya-db/samya/lab/virtual"
	"github.com/samya-db/samya/redistribute"
	"github.com/samya-db/samya/site/core"
)

// bases choose the modules of samya's systems. Other modules are a site's defaults.
var bases = map[string]func(*core.Config){
	transfers:     func(*core.Config) {},
	majority:      func(c *core.Config) { c.Strategy, c.Protocol = "instance", "majority" },
	star:          func(c *core.Config) { c.Strategy, c.Protocol = "instance", "star" },
	auto:          func(c *core.Config) { c.Strategy, c.Protocol = "instance", "auto" },
	paperMajority: paperOf("paper"),
	paperStar:     paperOf("star-paper"),
}

// paperOf returns the configuration of the paper's policies, by the name of its
// setting in package replay.
func paperOf(name string) func(*core.Config) {
	return func(c *core.Config) {
		s, err := replay.SettingByName(name)
		if err != nil {
			panic(err) // a constant name; every test that plays it would fail
		}
		s.Configure(c)
	}
}

// vary returns a variation of a system of samya.
func vary(name string) (func(*core.Config), error) {
	policy, isPolicy := strings.CutPrefix(name, reallocation)
	switch {
	case name == noForecast:
		return func(c *core.Config) { c.Trigger, c.Forecast = "reactive", "none" }, nil
	case name == constant:
		return func(c *core.Config) { c.Forecast = "constant" }, nil
	case name == offerAll:
		return func(c *core.Config) { c.Offer = "all" }, nil
	case name == auto:
		return func(c *core.Config) { c.Protocol = "auto" }, nil
	case isPolicy && slices.Contains(redistribute.Names(), policy):
		return func(c *core.Config) { c.Policy = policy }, nil
	}
	return nil, fmt.Errorf("no variation %q", name)
}

// newSystem makes a system for a run.
func newSystem(name string) (virtual.System, error) {
	parts := strings.Split(name, "+")
	base, ok := bases[parts[0]]
	if !ok {
		if len(parts) > 1 {
			return nil, fmt.Errorf("%s has no variations", parts[0])
		}
		return newRival(name)
	}
	all := []func(*core.Config){base}
	for _, v := range parts[1:] {
		f, err := vary(v)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return sites.New(func(c *core.Config) {
		for _, f := range all {
			f(c)
		}
	}), nil
}
