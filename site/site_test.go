package site_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/sitetest"
)

var five = []string{"as", "au", "eu", "sa", "us"}

// TestExactlyTheLimitIsGranted sends a thousand clients at an entity of 500 tokens:
// exactly 500 clients get a token, whether they all come to the same site or are skewed
// over five, until a client gives some back.
func TestExactlyTheLimitIsGranted(t *testing.T) {
	const limit, clients = 500, 1000
	skews := map[string][]int{
		"all at one site":   {0, 0, 0, 0, 1000},
		"skewed over five":  {700, 200, 50, 30, 20},
		"evenly over five":  {200, 200, 200, 200, 200},
		"two sites, skewed": {0, 990, 0, 10, 0},
	}
	for title, skew := range skews {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			c := sitetest.Start(t, five, nil)
			c.Create("acme/vm", limit)
			granted := acquireMany(t, c, skew)
			if granted != limit {
				t.Errorf("%d granted, want exactly %d; books %v", granted, limit, c.Books("acme/vm"))
			}
			sitetest.Eventually(t, "books", func() error {
				if u := c.Books("acme/vm"); u.GetAcquired() != limit || u.GetInTransit() != 0 || u.GetAvailable() != 0 {
					return fmt.Errorf("%v", u)
				}
				return nil
			})
			if _, err := c.Tokens("sa").Release(t.Context(), &samyav1.ReleaseRequest{Entity: "acme/vm", Tokens: 7}); err != nil {
				t.Fatal(err)
			}
			// A client in another region can acquire released tokens, at the latest when
			// its site no longer believes that there are none.
			sitetest.Eventually(t, "acquire after a release", func() error {
				_, err := c.Tokens("us").Acquire(t.Context(), &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 7})
				return err
			})
		})
	}
}

// acquireMany has clients acquire a token each, skew[i] of them at site i at once, and
// returns the number granted. Every refusal must be for want of tokens.
func acquireMany(t *testing.T, c *sitetest.Cluster, skew []int) int64 {
	t.Helper()
	var all sync.WaitGroup
	var granted atomic.Int64
	for i, n := range skew {
		for range n {
			all.Go(func() {
				_, err := c.Tokens(five[i]).Acquire(t.Context(), &samyav1.AcquireRequest{
					Entity: "acme/vm", Tokens: 1, Wait: durationpb.New(30e9),
				})
				switch {
				case err == nil:
					granted.Add(1)
				case !errors.Is(apierr.FromGRPC(err), apierr.OutOfTokens):
					t.Errorf("acquire at %s: %v", five[i], err)
				}
			})
		}
	}
	all.Wait()
	return granted.Load()
}
