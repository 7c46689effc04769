package core_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// recover tells a site that a majority is lost.
func (r *rig) recover(at core.SiteID, survivors, lost []core.SiteID) answer.Answer {
	r.t.Helper()
	call := r.nextCall()
	r.step(at, &input.Recover{Call: call, Survivors: survivors, Lost: lost})
	return r.answer(call)
}

// founded tells all sites of the founders, also after some are destroyed.
func founded(founders string) func(*core.Config) {
	return func(cfg *core.Config) { cfg.Members = sites(founders) }
}

// destroy has the machines of sites gone.
func (r *rig) destroy(sites ...core.SiteID) {
	for _, site := range sites {
		r.cut[site] = true
	}
	r.names = slices.DeleteFunc(slices.Clone(r.names), func(s core.SiteID) bool { return slices.Contains(sites, s) })
}

func sites(names string) (list []core.SiteID) {
	for _, n := range names {
		list = append(list, core.SiteID(n))
	}
	return list
}

// TestAMajorityIsLost destroys three sites of five. The survivors serve from their escrows and
// decide nothing, until an operator says that the others are destroyed. Then they write
// them off, and all goes on.
func TestAMajorityIsLost(t *testing.T) {
	r := newRig(t, 5, founded("abcde"))
	r.create("e", 1000)
	r.wantCode(r.acquire("c", "e", 70, "out"), answer.OK)
	r.wantCode(r.acquire("a", "e", 20, "a out"), answer.OK)
	all := r.names
	r.destroy(sites("cde")...)
	r.wantCode(r.acquire("b", "e", 30, "b out"), answer.OK)
	unheard := r.changeAsync("a", input.Change{Kind: input.SetLimit, Name: "e", Limit: 2000, RequestID: "before", Wait: 1000})
	r.advance(2000)
	r.wantCode(r.answer(unheard), answer.NoQuorum)
	for range 2 {
		r.wantCode(r.recover("a", sites("ab"), sites("cde")), answer.OK)
	}
	r.restart("a")
	r.advance(10_000)
	r.unanswered(r.changeAsync("a", input.Change{Kind: input.LoseSite, Name: "c", RequestID: "too early"}))
	r.wantCode(r.recover("b", sites("ab"), sites("cde")), answer.OK)
	r.advance(10_000)
	for _, lost := range sites("cde") {
		r.loseSite("b", lost)
		r.advance(10_000)
	}
	for _, site := range r.names {
		if v := r.view(site, "e"); v.WrittenOff != 600 {
			t.Errorf("%s: %d written off", site, v.WrittenOff)
		}
		if s := r.cores[site].Status(); s.Members != 2 || s.Behind != 0 {
			t.Errorf("%s: %+v", site, s)
		}
	}
	r.wantCode(r.change("a", input.SetLimit, "e", 1100, "after"), answer.OK)
	r.create("f", 300)
	r.wantCode(r.acquire("a", "f", 200, "f"), answer.OutOfTokens)
	r.advance(5000)
	for _, site := range r.names {
		r.restart(site)
	}
	r.advance(5000)
	r.names = all
	clear(r.cut)
	r.advance(10_000)
	for _, site := range sites("cde") {
		if _, out := errors.AsType[*core.OutError](r.cores[site].Refused()); !out {
			t.Errorf("%s goes on: %v", site, r.cores[site].Refused())
		}
	}
	r.names = sites("ab")
	if left, offered, net := r.books("e"); left+offered+net != 500 || net != 50 {
		t.Errorf("%d left, %d offered, %d out", left, offered, net)
	}
}

// TestRecoveriesRefused: an operator cannot leave out a site, lose a site twice, or recover
// a cluster with a majority.
func TestRecoveriesRefused(t *testing.T) {
	r := newRig(t, 5, founded("abcde"))
	for name, c := range map[string]struct {
		survivors, lost string
		code            answer.Code
		why             string
	}{
		"a majority is left": {"abc", "de", answer.Mismatch, ""},
		"a site is left out": {"ab", "cd", answer.Invalid, "e"},
		"a site is in both":  {"abc", "cde", answer.Invalid, "c"},
		"the site is lost":   {"bc", "ade", answer.Invalid, "a"},
	} {
		if a := r.recover("a", sites(c.survivors), sites(c.lost)); a.Code != c.code || a.Lacking != c.why {
			t.Errorf("%s: %+v", name, a)
		}
	}
	r.wantCode(r.recover("a", sites("ab"), sites("cde")), answer.OK)
	if a := r.recover("a", sites("ac"), sites("bde")); a.Code != answer.Invalid || a.Lacking != "c" {
		t.Errorf("c comes back: %+v", a)
	}
	// A further loss, also after a restart.
	r.restart("a")
	r.wantCode(r.recover("a", sites("a"), sites("bcde")), answer.OK)
	r.destroy(sites("bcde")...)
	r.advance(1000)
	r.loseSite("a", "b")
}

// TestPledgesToTheLost: tokens that a survivor had offered to an instance that the lost sites may
// have decided is written off with them.
func TestPledgesToTheLost(t *testing.T) {
	r := newRig(t, 3, founded("abc"))
	r.create("e", 900)
	// c leads, hears the offers of a and b, and decides with b, which dies with it.
	r.changeAsync("c", input.Change{Kind: input.SetLimit, Name: "e", Limit: 880, RequestID: "lower"})
	for end := r.now.Tick + 1000; r.view("a", "e").Offered == 0 && r.now.Tick < end; {
		r.advance(1)
	}
	offered := r.view("a", "e").Offered
	if offered == 0 {
		t.Fatal("a has offered nothing")
	}
	r.destroy(sites("bc")...)
	r.wantCode(r.recover("a", sites("a"), sites("bc")), answer.OK)
	r.advance(20_000)
	r.loseSite("a", "b")
	r.loseSite("a", "c")
	r.advance(20_000)
	if v := r.view("a", "e"); v.Offered != 0 || v.Left != 300-offered || v.WrittenOff != 600+offered {
		t.Errorf("%d had been offered: %+v", offered, v)
	}
}

// TestSurvivorsVouchForEachOther: survivors that were started anew serve once half of the
// other survivors vouch for their data. Nobody waits for the word of a destroyed site.
func TestSurvivorsVouchForEachOther(t *testing.T) {
	for _, survivors := range []string{"a", "ab"} {
		r := fenced(t, 5, founded("abcde"))
		r.advance(6000)
		r.create("e", 1000)
		var lost []core.SiteID
		for _, site := range r.names {
			if !slices.Contains(sites(survivors), site) {
				lost = append(lost, site)
			}
		}
		r.destroy(lost...)
		for _, site := range r.names {
			r.restart(site)
		}
		r.advance(20_000)
		for _, site := range r.names {
			if r.serves(site) {
				t.Errorf("of %s: %s serves by the word of too few", survivors, site)
			}
			r.wantCode(r.recover(site, sites(survivors), lost), answer.OK)
		}
		r.advance(20_000)
		for _, site := range r.names {
			if !r.serves(site) {
				t.Errorf("of %s: %s misses %d", survivors, site, r.cores[site].Status().Missing)
			}
		}
		for _, site := range lost {
			r.loseSite("a", site)
			r.advance(5000)
		}
		for _, site := range r.names {
			r.restart(site)
		}
		r.advance(20_000)
		for _, site := range r.names {
			if !r.serves(site) {
				t.Errorf("of %s: %s misses %d after another start", survivors, site, r.cores[site].Status().Missing)
			}
		}
		if v := r.view("a", "e"); v.WrittenOff != core.Tokens(200*len(lost)) {
			t.Errorf("of %s: %+v", survivors, v)
		}
	}
}

// TestTheDestroyedAreNotHeard: a destroyed site that comes back before it is written off
// is not heard, and stops.
func TestTheDestroyedAreNotHeard(t *testing.T) {
	r := newRig(t, 3, founded("abc"))
	r.create("e", 900)
	all := r.names
	r.destroy(sites("bc")...)
	r.wantCode(r.recover("a", sites("a"), sites("bc")), answer.OK)
	r.names = all
	clear(r.cut)
	r.advance(10_000)
	for _, site := range sites("bc") {
		if _, out := errors.AsType[*core.OutError](r.cores[site].Refused()); !out {
			t.Errorf("%s goes on: %v", site, r.cores[site].Refused())
		}
	}
	r.names = sites("a")
	r.loseSite("a", "b")
	r.loseSite("a", "c")
}
