package site_test

import (
	"errors"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/credtest"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/tlsconf"
	"github.com/samya-db/samya/site"
)

// TestExposure: a site shows only its own certificate, also with listeners open to all.
// Listeners that others can reach have certificates and an access file.
func TestExposure(t *testing.T) {
	set := credtest.New(t)
	own, others := set.Open(set.Issue(tlsconf.Site, "us", time.Hour)), set.Open(set.Issue(tlsconf.Site, "eu", time.Hour))
	for title, c := range map[string]struct {
		spoil func(*site.Config)
		field string
	}{
		"its own":             {func(c *site.Config) { c.TLS = own }, ""},
		"another site's":      {func(c *site.Config) { c.TLS = others }, "tls-cert"},
		"an app manager's":    {func(c *site.Config) { c.TLS = set.Open(set.Issue(tlsconf.AppManager, "us", time.Hour)) }, "tls-cert"},
		"a caller's":          {func(c *site.Config) { c.TLS = set.Open(set.Issue(tlsconf.Client, "us", time.Hour)) }, "tls-cert"},
		"none":                {func(c *site.Config) { c.TLS = set.Open(set.Believing()) }, "tls-cert"},
		"another's, by force": {func(c *site.Config) { c.Insecure, c.TLS = true, others }, "tls-cert"},
		"open":                {func(c *site.Config) { c.GRPC, c.TLS, c.Restricted = "0.0.0.0:0", own, true }, ""},
		"open, no access":     {func(c *site.Config) { c.GRPC, c.TLS = "0.0.0.0:0", own }, "grpc"},
		"open, by force":      {func(c *site.Config) { c.GRPC, c.HTTP, c.Insecure = "0.0.0.0:0", "0.0.0.0:0", true }, ""},
	} {
		cfg := goodConfig(t.TempDir())
		c.spoil(&cfg)
		err := cfg.Validate()
		bad, _ := errors.AsType[*name.Error](err)
		if c.field == "" && err != nil || c.field != "" && (bad == nil || bad.Field != c.field) {
			t.Errorf("%s: %v, want %q", title, err, c.field)
		}
	}
}
