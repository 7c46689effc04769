package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/handoff"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/avantan/transfer"
	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/internal/session"
	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/coretest"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/packed"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/journal"
	"github.com/samya-db/samya/site/store"
	bolt "go.etcd.io/bbolt"
	"pgregory.net/rapid"
)

const incarnation message.Incarnation = 1<<63 + 5

func options(dir string) store.Options {
	return store.Options{
		Dir: dir, Cluster: "prod", Site: "us", Members: []core.SiteID{"us", "eu", "as"}, Incarnation: incarnation,
	}
}

func open(t *testing.T, o store.Options) *store.Store {
	t.Helper()
	s, err := store.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closed(t *testing.T, s *store.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, s *store.Store) stored.Restored {
	t.Helper()
	r, err := loadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// full is a batch with every field of every record in it.
func full() *stored.Records {
	ballot := func(n uint64, site core.SiteID) avantan.Ballot { return avantan.Ballot{Number: n, Site: site} }
	value := avantan.Value{
		Contributions: []avantan.Contribution{
			{Site: "as", Offered: -5, Wanted: 7, Queued: 3, Kept: 2, Median: 4}, {Site: "us", Offered: 1 << 50, Wanted: 1},
		},
		Policy: "demand", Change: []byte(`{"limit":3}`),
	}
	state := avantan.State{
		Applied: 41, Promised: ballot(9, "us"), AcceptedAt: ballot(8, "eu"), Accepted: &value,
		Pledge:    &avantan.Contribution{Site: "us", Offered: -3, Wanted: 4, Queued: 2, Kept: 1, Window: 20_785},
		Exposures: []avantan.Ballot{ballot(3, "eu"), ballot(8, "eu"), ballot(9, "us")}, Built: true,
		Kept: []avantan.Kept{{Peer: "as", Instance: 40, Value: value}, {Peer: "eu", Instance: 41, Value: value}},
	}
	day := rates.Terms{Kind: rates.Window, Count: 1, Unit: rates.Day, Zone: "Asia/Tokyo", Volatile: true, Keys: true}
	return &stored.Records{
		Block: stored.Block{Sequence: 7, Wall: -12, Records: []stored.Request{
			{
				Key: attempt.Key{1, 15: 255}, Body: 1 << 63, Kind: stored.AcquireRequest, State: stored.Refused,
				Attempt: attempt.Of(3, 1), Generation: 1 << 40, Left: -4, Tenant: "a",
			},
			{Key: attempt.Key{2}, Body: 3, Kind: stored.ReturnRequest, State: stored.Dropped, Tokens: input.MaxTokens, Left: 5},
			{
				Key: attempt.Key{3}, Body: 4, Kind: stored.AllRequest, State: stored.Ran, Tokens: 9, Left: -1,
				Parts: []stored.Part{
					{Part: input.Part{Entity: "a/b", Tokens: 2}, Generation: 3},
					{Part: input.Part{Entity: "c", Tokens: input.MaxTokens}, Generation: 1 << 40},
				},
			},
			{Key: attempt.Key{4}, Body: 4, Kind: stored.AllRequest, State: stored.Refused, Generation: 3, Tenant: "c"},
		}, Sessions: []stored.Session{{ID: session.ID{1, 8: 255}, First: session.MaxSequence}, {ID: session.ID{2}}}},
		Claims: []stored.Claim{
			{
				ClaimAsk: message.ClaimAsk{
					Number: 3, Kind: message.SettleRelease, Key: attempt.Key{7}, Body: 5, Entity: "a/b", Tokens: 9,
					Attempt: attempt.Of(1, 1), NotAfter: 12,
				},
				Generation: 3, Sites: []core.SiteID{"as", "eu"},
			},
			{ClaimAsk: message.ClaimAsk{Number: 9, Kind: message.ReturnLease, Lease: attempt.Key{15: 1}}, Sites: []core.SiteID{"as"}},
		},
		Leases: []stored.Lease{
			{Number: 2, ID: "x/y", Entity: "a/b", Generation: 3, Tokens: 7, Expires: 1 << 41, TTL: 1000, Holder: "me", Window: 20_785, Share: true, Above: []stored.Mark{{Generation: 9, Window: 4}}},
		},
		Books: []stored.Books{{Name: "a/b", Generation: 3, Left: -9, Net: 12}, {Name: "c", Generation: 4}},
		Entities: []stored.Entity{
			{
				Name: "a/b", Generation: 3, Initial: 10, Limit: 20, Version: 5, Protocol: state,
				Results: []stored.LimitResult{{RequestID: "x", Body: 9, Outcome: answer.Mismatch, Limit: 20, Version: 5, Asked: 13, Keep: 14, Returned: -3}},
				Star: star.State{
					Reserved: 9,
					Slices: []star.Slice{
						{ID: star.ID{Leader: "as", Counter: 4}, Pledge: value.Contributions[1], Value: &value, Committed: true},
						{ID: star.ID{Leader: "as", Counter: 5}, Pledge: value.Contributions[1], Value: &value, Committed: true, Concluded: true},
						{ID: star.ID{Leader: "us", Counter: 2}, Pledge: value.Contributions[0]},
					},
					Floors: []star.ID{{Leader: "eu", Counter: 7}},
				},
				Moved: 6, Fetches: 8, Parent: 4, Shape: 9, Born: 2, Voters: 3, Appraised: 2, Returned: 1, Rescued: []core.SiteID{"as", "eu"},
				Rate:    stored.Rate{Terms: day, Window: 20_785, Late: 4, Opens: 20_786, Ended: stored.Ended{In: 20_784, Last: 2, Before: 1}},
				Surplus: 7, WrittenOff: -9, Debt: 11, DebtSince: 2, Held: 3, DebtHeard: []core.SiteID{"as", "us"},
				Handoff: handoff.State{
					Open: &handoff.Bequest{Heir: "as", Number: 4, Estate: handoff.Estate{
						Left: 5, Owed: 6, Net: -7, Items: []handoff.Item{{Data: []byte("l"), Tokens: 8}},
					}},
					Given: []handoff.Given{{Heir: "as", Number: 4}},
					Taken: []handoff.Taken{{Leaver: "eu", Number: 2}},
				},
				Transfer: transfer.State{
					Reserved: 32,
					Debits:   []transfer.Debit{{Receiver: "as", Asked: 5, Seq: 4, Amount: 3}, {Receiver: "eu", Asked: 1}},
					Credits:  []transfer.Credit{{Donor: "eu", Seq: 2}},
				},
			},
			{Name: "c", Generation: 4},
		},
		Catalogue: &stored.Catalogue{
			Generation: 4, Numbered: 10, Mode: answer.DecidedMode{Protocol: "auto", Version: 3}, Protocol: state,
			SettledIn: true, Destroyed: []core.SiteID{"as", "us"},
			Roster: stored.Roster{Version: 3, Changed: 7, Losses: 2, Seats: []stored.Seat{
				{Site: "as", State: stored.SeatDraining, Votes: []uint16{1}, Heir: "eu"},
				{Site: "eu", State: stored.SeatMember, Since: 5, Incarnation: 9, Votes: []uint16{2, 3}},
				{Site: "us", State: stored.SeatLost, Lost: 2, Rescued: true},
				{Site: "ux", State: stored.SeatMember, Unsettled: true},
			}},
			Version: 2,
		},
		Changes: []stored.Change{
			{Number: 8, Instance: 3, Outcome: answer.Exists, Generation: 2, Change: stored.CatalogueChange{
				Kind: input.CreateEntity, Name: "a/b", Limit: 10, RequestID: "r", Body: 6, Parent: "c", Incarnation: 3, Heir: "eu", Rate: day,
			}},
			{Number: 9, Instance: 4, Change: stored.CatalogueChange{
				Kind: input.DeleteEntity, Name: "d", Generation: 1, RequestID: "q", Body: 7, Subtree: true,
				ChangeTimes: stored.ChangeTimes{Asked: -5, NotAfter: 6, Keep: 7},
			}},
			{Number: 10, Instance: 4, Generation: 3, Change: stored.CatalogueChange{
				Kind: input.SetMode, Mode: "auto", Generation: 2, RequestID: "p", Body: 8,
			}},
			{Number: 11, Instance: 5, Generation: 2, Change: stored.CatalogueChange{
				Kind: input.RaiseVersion, Version: 2, Begin: 1, RequestID: "o", Body: 9,
			}},
		},
		Version: versions.Own().Newest,
		Commits: 12, Clock: &stored.Clock{Own: 1 << 50, Wall: -3},
		Remembered: []stored.Remembered{
			{Site: "as", Mark: message.Mark{Incarnation: 3, Run: 1<<63 + 1, Commits: 1 << 40}, Before: 9, Served: true},
			{Site: "eu", Mark: message.Mark{Incarnation: 4, Run: 5, Commits: 6}},
		},
		Forecasts: []stored.Forecast{
			{Name: "a/b", Generation: 3, Model: "auto", Bin: 5000, Wall: -7, State: []byte{1, 0, 255}},
			{Name: "c", Generation: 4, Model: "none", Bin: 1000, Wall: 1 << 40, State: []byte{2}},
		},
	}
}

func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	s := open(t, options(dir))
	want := full()
	if err := s.Commit(want); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	s = open(t, options(dir))
	got := load(t, s)
	if !reflect.DeepEqual(got, stored.Restored{
		Catalogue: want.Catalogue, Changes: want.Changes, Entities: want.Entities, Books: want.Books,
		Blocks: stored.BlockList{want.Block}, Incarnation: incarnation, Commits: want.Commits, Remembered: want.Remembered,
		Forecasts: want.Forecasts, Claims: want.Claims, Leases: want.Leases, Clock: want.Clock,
		Version: want.Version,
	}) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if !reflect.DeepEqual(want, full()) {
		t.Error("Commit has changed the records")
	}
	closed(t, s)
}

// TestForget deletes from the front, and only there.
func TestForget(t *testing.T) {
	s := open(t, options(t.TempDir()))
	defer closed(t, s)
	for n := range uint64(300) {
		r := stored.Records{
			Block:   stored.Block{Sequence: n + 1, Records: make([]stored.Request, 20)},
			Changes: []stored.Change{{Number: n + 1}},
		}
		if n == 250 {
			r.ForgetBlocks, r.ForgetChanges = 200, 101
		}
		if err := s.Commit(&r); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Commit(&stored.Records{ForgetBlocks: 256}); err != nil {
		t.Fatal(err)
	}
	r := load(t, s)
	blocks := blocksOf(t, r)
	if n := len(blocks); n != 45 || blocks[0].Sequence != 256 || blocks[n-1].Sequence != 300 {
		t.Errorf("%d blocks from %d", n, blocks[0].Sequence)
	}
	if n := len(r.Changes); n != 200 || r.Changes[0].Number != 101 {
		t.Errorf("%d changes from %d", n, r.Changes[0].Number)
	}
}

// TestDeleteAndCreateInOneBatch: deletions go first.
func TestDeleteAndCreateInOneBatch(t *testing.T) {
	s := open(t, options(t.TempDir()))
	defer closed(t, s)
	if err := s.Commit(full()); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(&stored.Records{
		Deleted:  []string{"a/b", "c", "never there"},
		Books:    []stored.Books{{Name: "c", Generation: 5, Left: 1}},
		Entities: []stored.Entity{{Name: "c", Generation: 5}},

		Forecasts: []stored.Forecast{{Name: "c", Generation: 5, State: []byte{9}}},
	}); err != nil {
		t.Fatal(err)
	}
	r := load(t, s)
	if len(r.Books) != 1 || r.Books[0].Generation != 5 || len(r.Entities) != 1 || r.Entities[0].Generation != 5 {
		t.Errorf("%+v, %+v", r.Books, r.Entities)
	}
	if len(r.Forecasts) != 1 || r.Forecasts[0].Generation != 5 {
		t.Errorf("%+v", r.Forecasts)
	}
}

// TestAgainstMaps commits random batches and compares with a store of maps,
// also after reopening.
func TestAgainstMaps(t *testing.T) {
	names := rapid.SampledFrom([]string{"a", "a/b", "b", "z"})
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(inMemory(t), "")
		if err != nil {
			rt.Fatal(err)
		}
		s, err := store.Open(options(dir))
		if err != nil {
			rt.Fatal(err)
		}
		maps := coretest.NewMemory(incarnation)
		block, change := uint64(0), uint64(0)
		for range rapid.IntRange(1, 8).Draw(rt, "batches") {
			var r stored.Records
			if rapid.Bool().Draw(rt, "delete") {
				r.Deleted = []string{names.Draw(rt, "deleted")}
			}
			for _, name := range rapid.SliceOfDistinct(names, func(n string) string { return n }).Draw(rt, "entities") {
				g := rapid.Uint64().Draw(rt, "generation")
				r.Entities = append(r.Entities, stored.Entity{Name: name, Generation: g, Version: block})
				r.Books = append(r.Books, stored.Books{Name: name, Generation: g, Left: core.Tokens(rapid.Int64().Draw(rt, "left"))})
				if state := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(rt, "state"); len(state) > 0 {
					r.Forecasts = append(r.Forecasts, stored.Forecast{Name: name, Generation: g, Model: "auto", Bin: 5000, Wall: int64(block), State: state})
				}
			}
			for range rapid.IntRange(0, 40).Draw(rt, "requests") {
				q := stored.Request{
					Key: attempt.Key(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(rt, "key")), Body: rapid.Uint64().Draw(rt, "body"),
					Left: core.Tokens(rapid.Int64().Draw(rt, "left after")), State: stored.RequestState(rapid.IntRange(0, 15).Draw(rt, "state of it")),
					Tokens: core.Tokens(rapid.Int64Min(0).Draw(rt, "moved")), Attempt: attempt.Number(rapid.Uint32().Draw(rt, "attempt")),
				}
				if rapid.Bool().Draw(rt, "packed") {
					r.Block.Join([]stored.Request{q}, packed.Append(nil, &q))
				} else {
					r.Block.Records = append(r.Block.Records, q)
				}
			}
			if len(r.Block.Records) > 0 {
				block++
				r.Block.Sequence, r.Block.Wall = block, rapid.Int64().Draw(rt, "wall")
			}
			if rapid.Bool().Draw(rt, "change") {
				change++
				r.Changes = []stored.Change{{Number: change, Change: stored.CatalogueChange{Name: names.Draw(rt, "changed")}}}
				r.Catalogue = &stored.Catalogue{Numbered: change}
			}
			if rapid.Bool().Draw(rt, "count") {
				r.Commits = message.Commits(rapid.Uint64().Draw(rt, "commits"))
			}
			for _, name := range rapid.SliceOfDistinct(names, func(n string) string { return n }).Draw(rt, "remembered") {
				mark := message.Mark{Incarnation: 1, Run: 2, Commits: message.Commits(block)}
				r.Remembered = append(r.Remembered, stored.Remembered{Site: core.SiteID(name), Mark: mark, Before: 1})
			}
			// A claim or lease may be made, made again and ended in the same batch.
			few := rapid.SliceOfNDistinct(rapid.Uint64Range(1, 6), 0, 4, func(n uint64) uint64 { return n })
			for _, n := range few.Draw(rt, "claims") {
				r.Claims = append(r.Claims, stored.Claim{
					ClaimAsk: message.ClaimAsk{Number: message.ClaimNumber(n), Kind: message.SettleRelease, Entity: "a", Tokens: core.Tokens(block)},
					Sites:    []core.SiteID{"eu"},
				})
			}
			for _, n := range few.Draw(rt, "settled claims") {
				r.SettledClaims = append(r.SettledClaims, message.ClaimNumber(n))
			}
			for _, n := range few.Draw(rt, "leases") {
				r.Leases = append(r.Leases, stored.Lease{Number: n, ID: "id", Entity: "a", Tokens: core.Tokens(block), TTL: 1})
			}
			r.EndedLeases = few.Draw(rt, "ended leases")
			r.ForgetBlocks = rapid.Uint64Range(0, block).Draw(rt, "forget blocks")
			r.ForgetChanges = rapid.Uint64Range(0, change).Draw(rt, "forget changes")
			if err := errors.Join(maps.Commit(&r), s.Commit(&r)); err != nil {
				rt.Fatal(err)
			}
			if rapid.Bool().Draw(rt, "reopen") {
				if err := s.Close(); err != nil {
					rt.Fatal(err)
				}
				if s, err = store.Open(options(dir)); err != nil {
					rt.Fatal(err)
				}
			}
			got, err := loadAll(s)
			want, _ := maps.Load()
			if err != nil || !reflect.DeepEqual(got, want) {
				rt.Fatalf("%v: got %+v\nwant %+v", err, got, want)
			}
		}
		if err := s.Close(); err != nil {
			rt.Fatal(err)
		}
	})
}

// TestDamagedRecords: Load says which record it cannot read.
func TestDamagedRecords(t *testing.T) {
	for bucket, says := range map[string]string{
		"books": `"e"`, "entities": `"e"`, "catalogue": "catalogue", "changes": "change", "requests": "request block",
	} {
		t.Run(bucket, func(t *testing.T) {
			dir := t.TempDir()
			closed(t, open(t, options(dir)))
			db, err := bolt.Open(filepath.Join(dir, "site.db"), 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			key := map[string][]byte{"catalogue": []byte("catalogue"), "changes": {7: 1}, "requests": {7: 1}}[bucket]
			if key == nil {
				key = []byte("e")
			}
			err = db.Update(func(tx *bolt.Tx) error { return tx.Bucket([]byte(bucket)).Put(key, []byte{0xff, 0xff}) })
			if err := errors.Join(err, db.Close()); err != nil {
				t.Fatal(err)
			}
			s := open(t, options(dir))
			defer closed(t, s)
			if _, err := loadAll(s); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("got %v, want one that says %s", err, says)
			}
		})
	}
}

// TestLongKeys: a key longer than a number is refused.
func TestLongKeys(t *testing.T) {
	base := newMaps()
	s, err := store.OpenOn(journal.OSDir(t.TempDir()), base, options(""))
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, s)
	commit(t, s, 1)
	load(t, s)
	for bucket, blocks := range base.buckets {
		if raw, ok := blocks[string([]byte{7: 1})]; ok {
			base.buckets[bucket][string([]byte{7: 1, 8: 0})] = raw
		}
	}
	if r, err := loadAll(s); err == nil {
		t.Errorf("a key of 9 bytes is read: %+v", r.Blocks)
	}
}

func TestMembersAreACopyOfNobody(t *testing.T) {
	o := options(t.TempDir())
	members := slices.Clone(o.Members)
	s := open(t, o)
	defer closed(t, s)
	if !slices.Equal(o.Members, members) {
		t.Errorf("Open has changed its options: %v", o.Members)
	}
}
