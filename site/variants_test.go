package site_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/sitetest"
)

// TestVariantsInAPartition cuts two sites off from three, and then a pair from all
// others. The majority variant redistributes where a majority is, the star variant
// wherever two sites are, and auto does whatever is possible in each part. Afterwards all
// slices come back.
func TestVariantsInAPartition(t *testing.T) {
	cases := []struct {
		protocol     string
		three, two   bool // whether tokens move among the three, and the two
		pair, single bool // whether they move in a pair alone, and at a site alone
	}{
		{protocol: "majority", three: true},
		{protocol: "star", three: true, two: true, pair: true},
		{protocol: "auto", three: true, two: true, pair: true},
	}
	for _, tc := range cases {
		t.Run(tc.protocol, func(t *testing.T) {
			t.Parallel()
			c := sitetest.Start(t, five, func(cfg *site.Config) { cfg.Protocol, cfg.Strategy = tc.protocol, "instance" })
			c.Create("acme/vm", 500)
			c.Partition([]string{"as", "au", "eu"}, []string{"sa", "us"})
			// A site holds 100: an acquire needs half of a neighbour's, too.
			var held int64
			try := func(at string, tokens int64, want bool) {
				t.Helper()
				wait := 5 * time.Second
				if want {
					wait = 30 * time.Second // on a busy machine
				}
				_, err := c.Tokens(at).Acquire(t.Context(), &samyav1.AcquireRequest{
					Entity: "acme/vm", Tokens: tokens, Wait: durationpb.New(wait),
				})
				switch {
				case err == nil:
					held += tokens
				case !errors.Is(apierr.FromGRPC(err), apierr.OutOfTokens):
					t.Fatalf("acquire at %s: %v", at, err)
				}
				if (err == nil) != want {
					t.Errorf("acquire of %d at %s: granted %v, want %v; books %v", tokens, at, err == nil, want, c.Books("acme/vm"))
				}
			}
			try("as", 150, tc.three)
			try("us", 150, tc.two)
			// A pair on its own, and a site on its own.
			c.Partition([]string{"au", "eu"})
			sitetest.Eventually(t, "books", func() error {
				if u := c.Books("acme/vm"); held+u.GetAvailable()+u.GetInTransit() != 500 {
					return fmt.Errorf("%v", u)
				}
				return nil
			})
			left := leftAt(c, "au") + leftAt(c, "eu")
			try("eu", left, tc.pair)
			try("sa", leftAt(c, "sa")+1, tc.single)
			c.Heal()
			sitetest.Eventually(t, "all that was set aside is back", func() error {
				u := c.Books("acme/vm")
				if u.GetInTransit() != 0 || u.GetAcquired() != held || u.GetAvailable()+held != 500 {
					return fmt.Errorf("held %d, books %v", held, u)
				}
				return nil
			})
		})
	}
}

func leftAt(c *sitetest.Cluster, name string) int64 {
	for _, s := range c.Books("acme/vm").GetShares() {
		if s.GetSite() == name {
			return s.GetLeft()
		}
	}
	return 0
}
