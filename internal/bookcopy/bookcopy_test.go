package bookcopy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/httpapi/httpapitest"
	"github.com/samya-db/samya/internal/testfuzz"
)

// cluster is a fake cluster with its client.
type cluster struct {
	*httpapi.Client
	fake *httpapitest.Manager
}

func newCluster(tb interface{ Fatal(args ...any) }) *cluster {
	fake := httpapitest.New()
	client, err := httpapi.New("http://fake", fake)
	if err != nil {
		tb.Fatal(err)
	}
	return &cluster{client, fake}
}

// tree makes a tree with tokens in use at several levels, and an entity in debt.
func tree(tb testing.TB) *cluster {
	tb.Helper()
	c := newCluster(tb)
	ctx := tb.Context()
	for _, e := range []struct {
		name, parent string
		limit, used  int64
	}{
		{"zoo", "", 0, 0},
		{"z-org", "", 100, 5},
		{"acme/web", "z-org", 80, 10},
		{"acme/web/prod", "acme/web", 80, 40},
		{"acme/data", "z-org", 70, 0},
		{"acme/vm", "", 5000, 30},
		{"lowered", "", 50, 20},
	} {
		if _, err := c.Create(ctx, httpapi.Creation{Name: e.name, Limit: e.limit, Parent: e.parent}); err != nil {
			tb.Fatal(err)
		}
		if e.used > 0 {
			if _, err := c.Acquire(ctx, e.name, httpapi.Request{Tokens: e.used}); err != nil {
				tb.Fatal(err)
			}
		}
	}
	if _, err := c.UpdateEntity(ctx, "lowered", httpapi.Change{Limit: 7}); err != nil {
		tb.Fatal(err)
	}
	return c
}

func exported(tb testing.TB, c *cluster) []byte {
	tb.Helper()
	var out bytes.Buffer
	if _, err := Export(tb.Context(), c, &out, "test", nil); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

func imported(tb testing.TB, raw []byte, into API) (Done, error) {
	tb.Helper()
	b, err := Read(bytes.NewReader(raw))
	if err != nil {
		tb.Fatal(err)
	}
	return Import(tb.Context(), into, b, nil)
}

// state tells of all entities of a cluster.
func state(tb testing.TB, c API) []string {
	tb.Helper()
	var all []string
	for token := ""; ; {
		page, err := c.ListEntities(tb.Context(), "", 0, token)
		if err != nil {
			tb.Fatal(err)
		}
		for _, e := range page.Entities {
			s, err := c.ReadEntity(tb.Context(), e.Name, "exact", 0)
			if err != nil {
				tb.Fatal(err)
			}
			all = append(all, fmt.Sprintf("%s below %q: %d of %d", e.Name, e.Parent, s.Acquired, s.Limit))
		}
		if token = page.NextPageToken; token == "" {
			return all
		}
	}
}

// TestExport: a file has all entities in the order of their names, with shares, leases
// and the checksum.
func TestExport(t *testing.T) {
	raw := exported(t, tree(t))
	b, err := Read(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if b.Header.Cluster != "demo" || !slices.Equal(b.Header.Sites, []string{"eu", "us"}) || b.Header.Build != "test" || b.Header.Time.IsZero() {
		t.Errorf("%+v", b.Header)
	}
	if b.End.Entities != 7 || b.End.Inconsistent != 0 || !slices.Equal(b.End.LeasesMissing, []string{"eu"}) {
		t.Errorf("%+v", b.End)
	}
	vm := b.Entries[b.places()["acme/vm"]]
	if vm.Acquired != 30 || vm.Limit != 5000 || !vm.Consistent || vm.Leases != 1 || vm.Leased != 3 || len(vm.Shares) != 1 || vm.Shares[0].Net != 30 {
		t.Errorf("%+v", vm)
	}
	if lines := bytes.Count(raw, []byte("\n")); lines != 9 {
		t.Errorf("%d lines", lines)
	}
}

// TestInconsistentEntities: a file tells of entities without a consistent read, and is
// not imported.
func TestInconsistentEntities(t *testing.T) {
	c := tree(t)
	c.fake.Torn = []string{"acme/web"}
	raw := exported(t, c)
	b, err := Read(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if b.End.Inconsistent != 1 || b.Entries[b.places()["acme/web"]].Consistent {
		t.Errorf("%+v", b.End)
	}
	reads := 0
	for _, r := range c.fake.Requests() {
		if strings.Contains(r, "/v1/entities/acme/web?") {
			reads++
		}
	}
	if reads != tries {
		t.Errorf("it was read %d times", reads)
	}
	into := newCluster(t)
	if _, err := imported(t, raw, into); err == nil || !strings.Contains(err.Error(), "1 of 7 entities have no consistent read") {
		t.Errorf("%v", err)
	}
	if got := state(t, into); len(got) > 0 {
		t.Errorf("imported %v", got)
	}
}

// TestImport: the new cluster has the same entities, limits and tokens in use.
func TestImport(t *testing.T) {
	c, into := tree(t), newCluster(t)
	raw := exported(t, c)
	done, err := imported(t, raw, into)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := state(t, into), state(t, c); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if done != (Done{Created: 7, Acquired: 5, Limited: 5, Tokens: 105}) {
		t.Errorf("%+v", done)
	}
	// Once more there is nothing to do.
	if done, err := imported(t, raw, into); err != nil || done != (Done{Tokens: 105}) {
		t.Errorf("again: %+v, %v", done, err)
	}
}

// unsteady is a cluster of which calls fail, done or not.
type unsteady struct {
	API
	mu  sync.Mutex
	rng *rand.Rand
}

var errLost = errors.New("no answer came")

func unsteadily[T any](u *unsteady, do func() (T, error)) (T, error) {
	var zero T
	u.mu.Lock()
	drawn := u.rng.IntN(12)
	u.mu.Unlock()
	switch drawn {
	case 0:
		return zero, errLost
	case 1:
		_, _ = do()
		return zero, errLost
	}
	return do()
}

func (u *unsteady) Create(ctx context.Context, e httpapi.Creation) (httpapi.Entity, error) {
	return unsteadily(u, func() (httpapi.Entity, error) { return u.API.Create(ctx, e) })
}

func (u *unsteady) Acquire(ctx context.Context, entity string, r httpapi.Request) (httpapi.Moved, error) {
	return unsteadily(u, func() (httpapi.Moved, error) { return u.API.Acquire(ctx, entity, r) })
}

func (u *unsteady) UpdateEntity(ctx context.Context, name string, c httpapi.Change) (httpapi.Changed, error) {
	return unsteadily(u, func() (httpapi.Changed, error) { return u.API.UpdateEntity(ctx, name, c) })
}

// TestImportGoesOn: however often an import fails, and even if the cluster forgets the
// ids of requests, it ends with the same state. Meanwhile nothing that was in use is
// free.
func TestImportGoesOn(t *testing.T) {
	raw := exported(t, tree(t))
	want := state(t, tree(t))
	rapid.Check(t, func(rt *rapid.T) {
		into := newCluster(rt)
		into.fake.Forgetful = rapid.Bool().Draw(rt, "forgetful")
		u := &unsteady{API: into, rng: rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))}
		for n := 0; ; n++ {
			_, err := imported(t, raw, u)
			if err == nil {
				break
			}
			if !errors.Is(err, errLost) || n == 1000 {
				rt.Fatal(n, err)
			}
		}
		if got := state(t, into); !slices.Equal(got, want) {
			rt.Fatalf("got %q\nwant %q", got, want)
		}
	})
}

// TestNothingIsFreeMeanwhile: before each request of an import, no entity has more tokens
// free than in the end.
func TestNothingIsFreeMeanwhile(t *testing.T) {
	raw := exported(t, tree(t))
	into := newCluster(t)
	w := &watched{API: into, t: t, most: map[string]int64{
		"zoo": 0, "z-org": 45, "acme/web": 30, "acme/web/prod": 40, "acme/data": 70, "acme/vm": 4970, "lowered": 0,
	}}
	if _, err := imported(t, raw, w); err != nil {
		t.Fatal(err)
	}
	if w.looks < 17 {
		t.Errorf("%d looks", w.looks)
	}
}

// watched looks at the tokens free once all that were in use could have been taken.
type watched struct {
	API
	t     *testing.T
	most  map[string]int64
	mu    sync.Mutex
	looks int
}

func (w *watched) UpdateEntity(ctx context.Context, name string, c httpapi.Change) (httpapi.Changed, error) {
	w.look(ctx)
	return w.API.UpdateEntity(ctx, name, c)
}

func (w *watched) look(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, most := range w.most {
		s, err := w.ReadEntity(ctx, name, "exact", 0)
		if err == nil && max(0, s.Available) > most {
			w.t.Errorf("%d tokens of %s are free, at most %d may be", s.Available, name, most)
		}
		w.looks++
	}
}

// TestImportRefusesAnotherCluster: entities of the same name that are other ones are not
// touched.
func TestImportRefusesAnotherCluster(t *testing.T) {
	raw := exported(t, tree(t))
	for name, prepare := range map[string]func(c *cluster) error{
		"another limit": func(c *cluster) error {
			_, err := c.Create(t.Context(), httpapi.Creation{Name: "acme/vm", Limit: 4999})
			return err
		},
		"another parent": func(c *cluster) error {
			_, err := c.Create(t.Context(), httpapi.Creation{Name: "zoo"})
			if err == nil {
				_, err = c.Create(t.Context(), httpapi.Creation{Name: "acme/vm", Limit: 5000, Parent: "zoo"})
			}
			return err
		},
		"tokens in use": func(c *cluster) error {
			_, err := c.Create(t.Context(), httpapi.Creation{Name: "acme/vm", Limit: 5000})
			if err == nil {
				_, err = c.Acquire(t.Context(), "acme/vm", httpapi.Request{Tokens: 7})
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			into := newCluster(t)
			if err := prepare(into); err != nil {
				t.Fatal(err)
			}
			if _, err := imported(t, raw, into); !errors.Is(err, errOther) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestBadFiles: a file of which a line or a byte is missing, added or changed is refused.
func TestBadFiles(t *testing.T) {
	raw := exported(t, tree(t))
	lines := bytes.SplitAfter(raw, []byte("\n"))
	lines = lines[:len(lines)-1]
	rng := rand.New(rand.NewPCG(3, 4))
	for n := range 1000 {
		b := slices.Clone(raw)
		var how string
		i, j := rng.IntN(len(lines)), rng.IntN(len(lines))
		switch rng.IntN(5) {
		case 0:
			at := rng.IntN(len(b))
			b[at] ^= 1 << rng.IntN(8)
			how = fmt.Sprintf("a bit of byte %d", at)
		case 1:
			at := rng.IntN(len(b))
			b, how = b[:at], fmt.Sprintf("cut off at %d", at)
		case 2:
			b, how = bytes.Join(slices.Delete(slices.Clone(lines), i, i+1), nil), fmt.Sprintf("without line %d", i)
		case 3:
			swapped := slices.Clone(lines)
			swapped[i], swapped[j] = swapped[j], swapped[i]
			b, how = bytes.Join(swapped, nil), fmt.Sprintf("lines %d and %d changed", i, j)
		default:
			b, how = bytes.Join(slices.Insert(slices.Clone(lines), j, lines[i]), nil), fmt.Sprintf("line %d again at %d", i, j)
		}
		if bytes.Equal(b, raw) {
			continue
		}
		if _, err := Read(bytes.NewReader(b)); !errors.Is(err, ErrFile) {
			t.Errorf("%d: %s: %v", n, how, err)
		}
	}
}

// TestImpossibleBooks: a file with a right checksum is refused if its entities cannot be
// those of a cluster.
func TestImpossibleBooks(t *testing.T) {
	entry := func(name, parent string, limit int64) Entry {
		return Entry{Status: httpapi.Status{Entity: httpapi.Entity{Name: name, Parent: parent, Limit: limit}, Consistent: true}}
	}
	for name, c := range map[string]struct {
		version int
		entries []Entry
		want    string
	}{
		"version":  {2, nil, "version 2, known is 1"},
		"order":    {1, []Entry{entry("b", "", 1), entry("a", "", 1)}, `"a" stands behind "b"`},
		"limit":    {1, []Entry{entry("a", "", -1)}, "limit"},
		"name":     {1, []Entry{entry("a b", "", 1)}, "name"},
		"orphan":   {1, []Entry{entry("a", "b", 1)}, `the parent "b" of entity "a" is missing`},
		"loop":     {1, []Entry{entry("a", "b", 1), entry("b", "a", 1)}, "above itself"},
		"own":      {1, []Entry{entry("a", "a", 1)}, "above itself"},
		"too many": {1, []Entry{{Status: httpapi.Status{Entity: httpapi.Entity{Name: "a"}, Acquired: 1 << 60}}}, "tokens out"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			w, err := newWriter(&out, &Header{Books: c.version})
			if err != nil {
				t.Fatal(err)
			}
			for i := range c.entries {
				if err := w.entry(&c.entries[i]); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := w.close(); err != nil {
				t.Fatal(err)
			}
			if _, err := Read(&out); !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestExportOfAClusterThatChanges: an entity that is deleted meanwhile is left out, and
// other errors end the export.
func TestExportOfAClusterThatChanges(t *testing.T) {
	c := tree(t)
	var out bytes.Buffer
	end, err := Export(t.Context(), &fading{API: c, err: apierr.NotFound("acme/vm")}, &out, "", nil)
	if err != nil || end.Entities != 6 {
		t.Errorf("%+v, %v", end, err)
	}
	if _, err := Export(t.Context(), &fading{API: c, err: apierr.Unreachable("")}, &out, "", nil); !errors.Is(err, apierr.SiteUnavailable) {
		t.Errorf("%v", err)
	}
}

// fading is a cluster that cannot tell of acme/vm.
type fading struct {
	API
	err error
}

func (f *fading) ReadEntity(ctx context.Context, name, consistency string, maxAge time.Duration) (httpapi.Status, error) {
	if name == "acme/vm" {
		return httpapi.Status{}, f.err
	}
	return f.API.ReadEntity(ctx, name, consistency, maxAge)
}

// FuzzRead: reading any bytes ends, with books that can be planned, or with ErrFile.
func FuzzRead(tf *testing.F) {
	f := testfuzz.On(tf)
	c := newCluster(f)
	c.fake.Create("a", 1)
	f.Add(exported(f, c))
	f.Add([]byte("{\"samya_books\":1}\n{\"entities\":0,\"sha256\":\"b1\"}\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := Read(bytes.NewReader(raw))
		if err != nil {
			if !errors.Is(err, ErrFile) {
				t.Fatal(err)
			}
			return
		}
		if all, err := plan(b, time.Unix(0, 0)); err == nil && len(all) != b.End.Entities {
			t.Fatalf("%d entities of %d", len(all), b.End.Entities)
		}
	})
}
