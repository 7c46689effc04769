package site_test

import (
	"context"
	"slices"
	"testing"
	"time"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/sitetest"
)

// TestWaitApplied: a waiting limit change is answered once all sites have applied it.
// While a site is cut off the answer comes by the deadline, names the site, and tells by
// how much that site can exceed the limit. A repeat elsewhere waits until the site is
// back.
func TestWaitApplied(t *testing.T) {
	names := []string{"as", "eu", "us"}
	c := sitetest.Start(t, names, nil)
	c.Create("vm", 90)
	ctx := t.Context()
	resp, err := c.Entities("eu").UpdateEntity(ctx, &samyav1.UpdateEntityRequest{Name: "vm", Limit: 60, WaitApplied: true})
	if err != nil || len(resp.GetMissingSites()) != 0 || resp.GetMayExceedBy() != 0 {
		t.Fatalf("%v, %v", resp, err)
	}
	for _, at := range names {
		got, err := c.Entities(at).GetEntity(ctx, &samyav1.GetEntityRequest{Name: "vm"})
		if err != nil || got.GetEntity().GetLimit() != 60 {
			t.Errorf("%s: %v, %v", at, got, err)
		}
	}
	// Cut off first, as keeps its 20 tokens: us asks the others for more once it has few.
	c.Partition([]string{"eu", "us"}, []string{"as"})
	acquire := &samyav1.AcquireRequest{Entity: "vm", Tokens: 20, RequestId: "a"}
	if _, err := c.Tokens("us").Acquire(ctx, acquire); err != nil {
		t.Fatal(err)
	}
	lower := &samyav1.UpdateEntityRequest{Name: "vm", Limit: 5, RequestId: "lower", WaitApplied: true}
	soon, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	resp, err = c.Entities("us").UpdateEntity(soon, lower)
	if err != nil || !slices.Equal(resp.GetMissingSites(), []string{"as"}) || resp.GetMayExceedBy() != 35 {
		t.Fatalf("%v, %v; want as, 35", resp, err)
	}
	for _, at := range []string{"eu", "us"} {
		got, err := c.Entities(at).GetEntity(ctx, &samyav1.GetEntityRequest{Name: "vm"})
		if u := got.GetUsage(); err != nil || u.GetMayExceedBy() != 35 || u.GetDebt() != 35 {
			t.Errorf("%s: %v, %v", at, got, err)
		}
	}
	waited := make(chan error, 1)
	go func() {
		resp, err = c.Entities("eu").UpdateEntity(ctx, lower)
		waited <- err
	}()
	c.Heal()
	if err := <-waited; err != nil || len(resp.GetMissingSites()) != 0 || resp.GetMayExceedBy() != 0 || resp.GetEntity().GetLimit() != 5 {
		t.Errorf("%v, %v", resp, err)
	}
	if got, err := c.Entities("as").GetEntity(ctx, &samyav1.GetEntityRequest{Name: "vm"}); err != nil || got.GetEntity().GetLimit() != 5 {
		t.Errorf("%v, %v", got, err)
	}
}
