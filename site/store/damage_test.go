package store_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/store"
	"pgregory.net/rapid"
)

// leave has a site end, with an orderly stop or without, and returns its files.
func leave(tb testing.TB, orderly bool) (base []byte, log fs.FS) {
	tb.Helper()
	t, ok := tb.(*testing.T)
	if !ok {
		tb.Fatal("not a test")
	}
	dir := t.TempDir()
	s := open(t, options(dir))
	for n := range uint64(120) {
		r := numberedRecords(n + 1)
		r.Entities = []stored.Entity{{Name: fmt.Sprint("e/", n%40), Generation: n + 1, Limit: 100}}
		r.Books = []stored.Books{{Name: fmt.Sprint("e/", n%40), Generation: n + 1, Left: core.Tokens(n)}}
		if n == 0 {
			r.Catalogue = &stored.Catalogue{Generation: 1000}
		}
		if err := s.Commit(r); err != nil {
			t.Fatal(err)
		}
		for more := n%50 == 30; more; {
			var err error
			if more, err = s.Step(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if orderly {
		closed(t, s)
	} else if err := store.Abandon(s); err != nil {
		t.Fatal(err)
	}
	base, err := os.ReadFile(filepath.Join(dir, "site.db"))
	if err != nil {
		t.Fatal(err)
	}
	return base, logOf(t, dir)
}

// TestDamagedBase damages the base anywhere: pages of zeros, of another page, cut off,
// with bits turned. The start is refused with the name of the file, or the site finds
// readable data. Nothing panics, which would end the test.
func TestDamagedBase(t *testing.T) {
	const page = 4096
	for _, orderly := range []bool{true, false} {
		good, log := leave(t, orderly)
		refused, started := 0, 0
		rapid.Check(t, func(rt *rapid.T) {
			dir, err := os.MkdirTemp(inMemory(t), "")
			if err != nil {
				rt.Fatal(err)
			}
			b := slices.Clone(good)
			at := rapid.IntRange(0, len(b)/page-1).Draw(rt, "page") * page
			switch rapid.IntRange(0, 4).Draw(rt, "damage") {
			case 0:
				b = b[:rapid.IntRange(1, len(b)-1).Draw(rt, "cut at")]
			case 1:
				clear(b[at : at+page])
			case 2:
				copy(b[at:at+page], good[rapid.IntRange(0, len(b)/page-1).Draw(rt, "other page")*page:])
			case 3:
				b[at+rapid.IntRange(0, 80).Draw(rt, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
			default:
				b[at+rapid.IntRange(0, page-1).Draw(rt, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
			}
			if err := errors.Join(os.CopyFS(dir, log), os.WriteFile(filepath.Join(dir, "site.db"), b, 0o600)); err != nil {
				rt.Fatal(err)
			}
			if err := startOn(dir); err != nil {
				if !strings.Contains(err.Error(), filepath.Join(dir, "site.db")) && !errors.Is(err, store.ErrDamaged) {
					rt.Fatalf("the file is not named: %v", err)
				}
				refused++
				return
			}
			started++
		})
		if refused == 0 || started == 0 {
			t.Errorf("%d starts were refused, %d were not", refused, started)
		}
	}
}

// startOn starts a site on a directory, commits once, and stops.
func startOn(dir string) error {
	s, err := store.Open(options(dir))
	if err != nil {
		return err
	}
	state, err := s.Load()
	if err != nil {
		return errors.Join(err, s.Close())
	}
	// The core may refuse its input, by an error.
	_, _ = core.New(core.Config{
		Self: "us", Members: []core.SiteID{"as", "eu", "us"}, Rand: rand.New(rand.NewPCG(1, 2)), Retention: 300_000, Run: 1,
	}, state)
	return errors.Join(s.Commit(numberedRecords(1000)), s.Close())
}
