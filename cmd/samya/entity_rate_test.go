package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/samya-db/samya/internal/httpapi"
)

// TestHowRated: the sentence about each kind of rate quota.
func TestHowRated(t *testing.T) {
	durable := true
	for _, c := range []struct {
		of   httpapi.Entity
		want string
	}{
		{httpapi.Entity{Per: "200ms", Kind: "bucket", Durable: new(bool)}, "The limit is a bucket that fills within 200ms. Grants are not durable: a site that starts anew takes all its tokens for granted."},
		{httpapi.Entity{Per: "1h", Kind: "sliding", Durable: &durable}, "The limit is within any 1h."},
		{httpapi.Entity{Per: "1d", Kind: "window", TimeZone: "Asia/Tokyo", Durable: &durable}, "The limit is in each window of 1d of Asia/Tokyo. This one ends at 2026-11-29T15:00:00Z."},
		{httpapi.Entity{Per: "1m", Kind: "window"}, "The limit is in each window of 1m. This one ends at 2026-11-29T15:00:00Z."},
	} {
		if got := howRated(&c.of, 1_795_964_400_000); got != c.want {
			t.Errorf("%+v: %q, want %q", c.of, got, c.want)
		}
	}
}

// TestTemplateFlags: faults of a template name the flags at fault.
func TestTemplateFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--rate 60/m --kind bucket": "",
		"--rate 60/m":               "",
		"--limit 5":                 "template: is for rate quotas",
		"--rate 60/m --durable":     "durable: must be false for keys",
		"--rate 60/d":               "per: must be below an hour for windows of keys: after a start a site has none of their tokens until the window ends",
	} {
		var f rateFlags
		flags := pflag.NewFlagSet("create", pflag.ContinueOnError)
		limit := flags.Int64("limit", 0, "")
		f.add(flags)
		if err := flags.Parse(append(strings.Fields(args), "--template")); err != nil {
			t.Fatal(err)
		}
		got := ""
		e, err := f.creation(*limit, flags)
		if err != nil {
			got = err.Error()
		}
		if got != want || err == nil && !e.Keys {
			t.Errorf("%s: %q, want %q; %+v", args, got, want, e)
		}
	}
}
