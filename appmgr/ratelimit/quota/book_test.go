package quota

import (
	"testing"
	"time"

	"github.com/samya-db/samya/internal/rates"
)

// TestBook: the token buckets of books that grow and shrink.
func TestBook(t *testing.T) {
	type want struct{ max, fill, seconds int64 }
	check := func(what string, b *book, w want) {
		t.Helper()
		got := b.tokenBucket()
		if got.Max != w.max || got.Fill != w.fill || got.Interval != time.Duration(w.seconds)*time.Second {
			t.Errorf("%s: %+v, want %+v", what, got, w)
		}
	}
	b := &book{kind: rates.Bucket, period: time.Minute}
	b.add(&lease{name: "1", tokens: 80}, 1)
	check("a bucket", b, want{70, 80, 60})
	b.unsent = false
	b.add(&lease{name: "2", tokens: 8}, 2)
	check("a larger one", b, want{7, 88, 60})
	if b.unsent = false; !b.shrink(11, 3) || b.shrink(5, 4) {
		t.Error("it does not shrink once")
	}
	check("a smaller one", b, want{1, 11, 60})
	if back := b.returned(); len(back) != 1 || back[0] != (Return{Lease: "1", Tokens: 77}) || b.tokens() != 11 {
		t.Errorf("returned %+v, %d are left", back, b.tokens())
	}
	for tokens, w := range map[int64]want{1: {1, 1, 120}, 2: {1, 1, 60}, 4: {1, 2, 60}, 100: {25, 63, 60}} {
		b := &book{kind: rates.Window, period: time.Minute}
		b.add(&lease{tokens: tokens}, 1)
		check("a window", b, w)
		if b.max+b.fill+b.spare > tokens {
			t.Errorf("%d tokens: %+v", tokens, b)
		}
	}
	// Parts of a second.
	b = &book{kind: rates.Bucket, period: 200 * time.Millisecond}
	b.add(&lease{tokens: 20}, 1)
	check("five times a second", b, want{18, 100, 1})
	b = &book{kind: rates.Bucket, period: 1500 * time.Millisecond}
	b.add(&lease{tokens: 3}, 1)
	check("three in a second and a half", b, want{2, 4, 2})
}

// TestIntervals: Envoy tells token buckets apart by the nanoseconds of their intervals.
func TestIntervals(t *testing.T) {
	seen := map[int32]bool{}
	for _, d := range []time.Duration{time.Second, 2 * time.Second, time.Minute, 2 * time.Minute, time.Hour, 24 * time.Hour, 372 * 24 * time.Hour} {
		p := interval(d)
		if p.GetSeconds() != int64(d/time.Second) || seen[p.GetNanos()] {
			t.Errorf("%v is %v", d, p)
		}
		seen[p.GetNanos()] = true
	}
}

// TestDemand: a share follows the requests of a period, and a new bucket gets a small part.
func TestDemand(t *testing.T) {
	var d demand
	d.note(1, time.Hour)
	if n := d.wants(time.Minute, 160); n != 10 {
		t.Errorf("a new bucket wants %d", n)
	}
	d.note(50, time.Hour+5*time.Second)
	if n := d.wants(time.Minute, 10_000); n != 918 { // 51 in 5 s
		t.Errorf("it wants %d", n)
	}
	d.note(0, time.Hour+10*time.Second)
	if n := d.wants(time.Minute, 10_000); n != 459 {
		t.Errorf("then %d", n)
	}
	if n := d.wants(time.Minute, 7); n != 7 {
		t.Errorf("%d of 7", n)
	}
}
