package replay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/samya-db/samya/site/core"
)

// Setting is a named choice of modules.
type Setting struct {
	Name string
	// About describes the setting in a few words.
	About string
	// Configure makes the choice. Other modules have the defaults of a site.
	Configure func(*core.Config)
}

// settings are all settings. To add a setting, add a line. All but default name
// every module, so that new defaults of a site do not change them.
var settings = []Setting{
	{"paper", "as in the paper, with the first majority, its trigger and its wants; forecasts by auto", paper},
	{"paper-reactive", "paper, but nothing is begun before an acquire waits", func(c *core.Config) {
		paper(c)
		c.Trigger, c.Forecast = "reactive", "none"
	}},
	{"paper-trigger", "instance, but for the paper's trigger and wants", func(c *core.Config) {
		ours(c)
		c.Trigger, c.Want = "paper", "paper"
	}},
	{"reactive", "instance, but nothing is begun before an acquire waits", func(c *core.Config) {
		ours(c)
		c.Trigger = "reactive"
	}},
	{"instance", "our policies, and instances alone", ours},
	{"instance-constant", "instance, with forecasts that are the same at all times", func(c *core.Config) {
		ours(c)
		c.Forecast = "constant"
	}},
	{"transfer", "our policies, and direct transfers first", transfer},
	{"ahead", "transfer, and instances on behalf of sites that expect to run short", func(c *core.Config) {
		transfer(c)
		c.Trigger = "ahead"
	}},
	{"transfer-constant", "transfer, with forecasts that are the same at all times", func(c *core.Config) {
		transfer(c)
		c.Forecast = "constant"
	}},
	{"star-paper", "paper, under the star variant", func(c *core.Config) {
		paper(c)
		c.Protocol = "star"
	}},
	{"star", "instance, under the star variant", func(c *core.Config) {
		ours(c)
		c.Protocol = "star"
	}},
	{"default", "what a site does unless told otherwise", func(*core.Config) {}},
	{"refuse", "no redistribution: what the escrow cannot serve is refused", func(c *core.Config) {
		ours(c)
		c.Trigger, c.Admission = "reactive", "refuse"
	}},
}

// paper is the control (Samya, Sections 4.2 to 4.4 and 5.1).
func paper(c *core.Config) {
	c.Protocol, c.Strategy, c.Policy, c.Offer, c.Wait = "majority", "instance", "paper", "all", "quorum"
	c.Trigger, c.Want, c.Forecast, c.Admission = "paper", "paper", "auto", "proof"
}

// ours are the best policies with instances alone.
func ours(c *core.Config) {
	c.Protocol, c.Strategy, c.Policy, c.Offer, c.Wait = "majority", "instance", "equal-risk", "spare", "all"
	c.Trigger, c.Want, c.Forecast, c.Admission = "low-water", "quantile", "auto", "wait"
}

// transfer is ours with direct transfers.
func transfer(c *core.Config) {
	ours(c)
	c.Strategy = "transfer"
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
