package main

import (
	"testing"

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
