package node

import (
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/membership"
	"github.com/samya-db/samya/internal/tlsconf"
)

// TestConfigNamesTheField: an error names the field at fault, and the bound.
func TestConfigNamesTheField(t *testing.T) {
	good := func() *Config {
		return &Config{
			Cluster: "test", Name: "us", Region: "us", GRPC: "127.0.0.1:0", HTTP: "127.0.0.1:0",
			Gossip: Gossip{Bind: "127.0.0.1:0"},
		}
	}
	if err := good().Validate(tlsconf.Site, true); err != nil {
		t.Fatal(err)
	}
	for what, tc := range map[string]struct {
		spoil func(c *Config)
		want  string
	}{
		"cluster":     {func(c *Config) { c.Cluster = "-" }, "cluster: "},
		"name":        {func(c *Config) { c.Name = "" }, "name: "},
		"region":      {func(c *Config) { c.Region = "U" }, "region: "},
		"instance":    {func(c *Config) { c.Instance = "A" }, "instance: "},
		"term":        {func(c *Config) { c.Term = -1 }, "term: -1, at least 0"},
		"grpc":        {func(c *Config) { c.GRPC = "7000" }, "grpc: "},
		"http":        {func(c *Config) { c.HTTP = "127.0.0.1:99999" }, "http: "},
		"gossip":      {func(c *Config) { c.Gossip.Bind = "us:1" }, "gossip: bind: "},
		"preset":      {func(c *Config) { c.Preset = "moon" }, `preset: "moon", must be`},
		"connections": {func(c *Config) { c.MaxConns = -1 }, "max-conns: -1, at least 0 (the default)"},
	} {
		c := good()
		tc.spoil(c)
		if err := c.Validate(tlsconf.Site, true); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("bad %s: %v, want %q", what, err, tc.want)
		}
		// An app manager that is told its sites does not gossip.
		c.Gossip = Gossip{Bind: "us:1"}
		if err := c.Validate(tlsconf.AppManager, false); (err == nil) != (what == "gossip") {
			t.Errorf("bad %s, without gossip: %v", what, err)
		}
	}
}

// TestNodeInGossip: gossip tells which node of a site this is, and its term.
func TestNodeInGossip(t *testing.T) {
	c := Config{Cluster: "test", Name: "us", Region: "us", Instance: "a", Term: 7}
	if n := c.Membership(membership.RoleSite, "127.0.0.1:1", "127.0.0.1:2").Self; n.ID() != "site/us/a" || n.Term != 7 || n.Validate() != nil {
		t.Errorf("it tells %+v, %v", n, n.Validate())
	}
}
