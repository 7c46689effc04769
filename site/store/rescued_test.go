package store_test

import (
	"errors"
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/store"
)

// TestRescued: a directory is held without a change, and never opened once it is marked.
func TestRescued(t *testing.T) {
	o := store.Options{Dir: t.TempDir(), Cluster: "prod", Site: "us", Members: []core.SiteID{"us"}}
	s, err := store.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Hold(o.Dir); !errors.Is(err, store.ErrInUse) {
		t.Errorf("held beside a site: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	release, err := store.Hold(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(o); !errors.Is(err, store.ErrInUse) {
		t.Errorf("opened while it is held: %v", err)
	}
	if x, err := store.Examine(o.Dir); err != nil || x.Refused != nil || x.Site != "us" {
		t.Errorf("examined while it is held: %v, %v", x.Refused, err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := store.MarkRescued(o.Dir); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.Open(o); !errors.Is(err, store.ErrRescued) {
		t.Errorf("opened once it is rescued: %v", err)
	}
	if marked, err := store.Rescued(o.Dir); !marked || err != nil {
		t.Errorf("%v, %v", marked, err)
	}
	if x, err := store.Examine(o.Dir); err != nil || x.Refused != nil {
		t.Errorf("examined once it is rescued: %v, %v", x.Refused, err)
	}
}
