package replay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/samya-db/samya/site/core"
)

// Setting is a choice of modules under a name.
type Setting struct {
	Name string
	// About says what it is, in a few words.
	About string
	// Configure makes the choice; what it leaves alone has the default of a site.
	Configure func(*core.Config)
}

// settings are all of them. To add one is to add a line.
var settings = []Setting{
	{"paper", "majority as in the paper: offer all, equal shares, no forecast", func(c *core.Config) {
		c.Protocol, c.Policy, c.Offer, c.Trigger, c.Forecast = "majority", "paper", "all", "reactive", "none"
	}},
	{"foresight", "paper, with its forecasts, its wants and its first majority as well", func(c *core.Config) {
		c.Protocol, c.Policy, c.Offer, c.Trigger, c.Want, c.Wait = "majority", "paper", "all", "paper", "paper", "quorum"
	}},
	{"reactive", "the defaults of a site, but the reactive trigger and the policy demand", func(c *core.Config) {
		c.Trigger, c.Policy = "reactive", "demand"
	}},
	{"low-water", "the defaults of a site, but the policy demand", func(c *core.Config) {
		c.Policy = "demand"
	}},
	{"default", "the defaults of a site", func(*core.Config) {}},
	{"refuse", "no redistribution: what the escrow cannot serve is refused", func(c *core.Config) {
		c.Admission, c.Trigger = "refuse", "reactive"
	}},
	{"transfer", "the defaults, with direct transfers where an instance would be begun", func(c *core.Config) {
		c.Strategy = "transfer"
	}},
	{"star-paper", "paper, under the star variant", func(c *core.Config) {
		c.Protocol, c.Policy, c.Offer, c.Trigger, c.Forecast = "star", "paper", "all", "reactive", "none"
	}},
	{"star-reactive", "reactive, under the star variant", func(c *core.Config) {
		c.Protocol, c.Trigger, c.Policy = "star", "reactive", "demand"
	}},
	{"star", "the defaults, under the star variant", func(c *core.Config) {
		c.Protocol = "star"
	}},
}

// Settings lists all settings.
func Settings() []Setting { return slices.Clone(settings) }

// SettingByName finds a setting.
func SettingByName(name string) (Setting, error) {
	known := make([]string, len(settings))
	for i, s := range settings {
		if s.Name == name {
			return s, nil
		}
		known[i] = s.Name
	}
	return Setting{}, fmt.Errorf("setting %q, known are %s", name, strings.Join(known, ", "))
}
