package rescue_test

import (
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/rescue"
)

// TestEstates: each entity has its own part of the tokens out, without those of entities
// below; leases end by the wall clock.
func TestEstates(t *testing.T) {
	data := &stored.Restored{
		Entities: []stored.Entity{{Name: "p", Generation: 1}, {Name: "p/x", Generation: 2, Parent: 1}, {Name: "p/x/y", Generation: 5, Parent: 2}},
		Books: []stored.Books{
			{Name: "p", Generation: 1, Left: 40, Net: 25}, {Name: "p/x", Generation: 2, Left: 7, Net: 20}, {Name: "p/x/y", Generation: 5, Left: -1, Net: 22},
		},
		Clock: &stored.Clock{Own: 1000, Wall: 51_000},
		Leases: []stored.Lease{
			{Generation: 1, Tokens: 2, Expires: 900, TTL: 5000},
			{Generation: 1, Tokens: 3, Expires: 2000, TTL: 5000},
			// Its end lies further ahead than it was ever granted for: the clock was set back.
			{Generation: 1, Tokens: 1, Expires: 90_000, TTL: 5000},
			{Generation: 99, Tokens: 9, Expires: 2000, TTL: 5000},
		},
	}
	want := map[uint64]*rescue.Estate{
		1: {
			Name: "p", Generation: 1, Net: 5, Held: 65, Leases: 1,
			Leased: []input.Leased{{Tokens: 5, Until: 52_000}, {Tokens: 1, Until: 56_000}},
		},
		2: {Name: "p/x", Generation: 2, Net: -2, Held: 27},
		5: {Name: "p/x/y", Generation: 5, Net: 22, Held: 21},
	}
	if got := rescue.Estates(data, 55_000, 1000); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got[1], want[1])
	}
}

// TestPartsOfLeases: however many leases there are, their parts are few, have all tokens,
// and let none come back before its lease has ended.
func TestPartsOfLeases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := &stored.Restored{Books: []stored.Books{{Name: "e", Generation: 1}}}
		now := rapid.Int64Range(1, 100).Draw(t, "now")
		for range rapid.IntRange(0, 40).Draw(t, "leases") {
			data.Leases = append(data.Leases, stored.Lease{
				Generation: 1, Tokens: rescue.Tokens(rapid.IntRange(1, 9).Draw(t, "tokens")), Expires: rapid.Int64Range(1, 100).Draw(t, "expires"), TTL: 100,
			})
		}
		e := rescue.Estates(data, now, 0)[1]
		if told := (&input.Rescue{Site: "d", Generation: 1, Leased: e.Leased}); !told.Valid() {
			t.Fatalf("%+v", e)
		}
		for at := int64(0); at <= 101; at++ {
			var held, kept rescue.Tokens
			for _, l := range data.Leases {
				if l.Expires >= at {
					held += l.Tokens
				}
			}
			for _, p := range e.Leased {
				if p.Until >= at {
					kept += p.Tokens
				}
			}
			if kept < held || at > now && len(data.Leases) < input.MaxLeased && kept != held {
				t.Fatalf("at %d leases hold %d, the parts %d", at, held, kept)
			}
		}
	})
}

// TestLatest: the data must be the latest that any member remembers, and be remembered.
func TestLatest(t *testing.T) {
	mine := rescue.Mark{Incarnation: 7, Commit: 100}
	for title, tc := range map[string]struct {
		members        []rescue.Memory
		stale, unknown bool
	}{
		"the same":            {[]rescue.Memory{{Mark: rescue.Mark{Incarnation: 7, Commit: 100}, Served: true}}, false, false},
		"earlier":             {[]rescue.Memory{{Mark: rescue.Mark{Incarnation: 7, Commit: 3}, Served: true}, {}}, false, false},
		"later":               {[]rescue.Memory{{Mark: mine, Served: true}, {Member: "b", Mark: rescue.Mark{Incarnation: 7, Commit: 101}, Served: true}}, true, false},
		"other data":          {[]rescue.Memory{{Mark: mine, Served: true}, {Mark: rescue.Mark{Incarnation: 8, Commit: 1}, Served: true}}, true, false},
		"other data, unheard": {[]rescue.Memory{{Mark: mine, Served: true}, {Mark: rescue.Mark{Incarnation: 8}}}, false, false},
		"nobody knows":        {[]rescue.Memory{{}, {Mark: rescue.Mark{Incarnation: 8}}}, false, true},
		"nobody":              {nil, false, true},
	} {
		err := rescue.Latest(mine, tc.members)
		_, stale := errors.AsType[*rescue.StaleError](err)
		_, unknown := errors.AsType[*rescue.UnknownError](err)
		if stale != tc.stale || unknown != tc.unknown || (err == nil) != (!tc.stale && !tc.unknown) {
			t.Errorf("%s: %v", title, err)
		}
	}
}
