package core_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/coretest"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// newVersionRig starts three sites on data of a version, each with a build of its own:
// that of builds, or of version 2.
func newVersionRig(t *testing.T, data versions.Version, builds map[core.SiteID]versions.Version) *rig {
	t.Helper()
	r := newRig(t, 3, nil)
	r.tweak = func(c *core.Config) {
		c.Versions = versions.Of(2)
		if b := builds[c.Self]; b != 0 {
			c.Versions = versions.Of(b)
		}
	}
	for i, name := range r.names {
		r.disks[name] = coretest.NewMemory(message.Incarnation(i + 1))
		r.disks[name].Version = data
		r.restart(name)
	}
	return r
}

// meet connects all sites: each hears of the versions of the others.
func (r *rig) meet() {
	r.t.Helper()
	for _, to := range r.names {
		for _, from := range r.names {
			if from != to && !r.cut[from] && !r.cut[to] {
				r.step(to, input.Speaks{From: from, Speaker: r.cores[from].Status().Versions})
			}
		}
	}
}

func (r *rig) raise(at core.SiteID, to versions.Version, id string) answer.Answer {
	r.t.Helper()
	call := r.changeAsync(at, input.Change{Kind: input.RaiseVersion, Version: to, RequestID: id})
	r.advance(2000)
	return r.answer(call)
}

func (r *rig) wantVersion(v versions.Version, begun bool, sites ...core.SiteID) {
	r.t.Helper()
	for _, name := range sites {
		if got := r.cores[name].Status().Versions; got.Cluster != v || got.Begun != begun {
			r.t.Errorf("%s knows %+v, want version %d, begun %v", name, got, v, begun)
		}
		if got := r.disks[name].Version; got != v {
			r.t.Errorf("the disk of %s knows version %d, want %d", name, got, v)
		}
	}
}

// TestRaiseVersion: the version is raised by one once all members have told that they speak the
// next one, and never else. A repeat gets the first answer.
func TestRaiseVersion(t *testing.T) {
	r := newVersionRig(t, 1, nil)
	unready := func(to versions.Version, id string, want ...core.SiteID) {
		t.Helper()
		a := r.raise("a", to, id)
		var got []core.SiteID
		for _, u := range a.Unready() {
			got = append(got, u.Site)
		}
		if a.Code != answer.Unready || !slices.Equal(got, want) {
			t.Errorf("%v for want of %v, expected %v", a.Code, a.Unready(), want)
		}
	}
	unready(2, "early", "b", "c")
	r.meet()
	r.step("a", input.Reachable{Sites: []core.SiteID{"b"}})
	unready(2, "c is away", "c")
	r.step("a", input.Reachable{Sites: []core.SiteID{"b", "c"}})
	r.wantVersion(1, true, r.names...)
	for _, tc := range []struct {
		name  string
		at    core.SiteID
		to    versions.Version
		id    string
		want  answer.Code
		known versions.Version
	}{
		{"two at once", "a", 3, "far", answer.Mismatch, 1},
		{"by one", "a", 2, "raise", answer.OK, 2},
		{"repeated elsewhere", "c", 2, "raise", answer.OK, 2},
		{"id of another raise", "b", 3, "raise", answer.Reused, 0},
		{"again", "b", 2, "again", answer.OK, 2},
		{"back", "b", 1, "back", answer.Mismatch, 2},
	} {
		if a := r.raise(tc.at, tc.to, tc.id); a.Code != tc.want || a.Version() != tc.known {
			t.Errorf("%s: %v, version %d; want %v, %d", tc.name, a.Code, a.Version(), tc.want, tc.known)
		}
	}
	unready(3, "one that nobody speaks", "a", "b", "c")
	r.wantVersion(2, true, r.names...)
	for _, name := range r.names {
		r.restart(name)
	}
	r.wantVersion(2, true, r.names...)
}

// TestRaiseNeedsEveryBuild: a member with an older build keeps the version as it is, and
// the answer tells what it speaks. What it told before it went back does not count.
func TestRaiseNeedsEveryBuild(t *testing.T) {
	builds := map[core.SiteID]versions.Version{"c": 1}
	r := newVersionRig(t, 1, builds)
	r.meet()
	want := answer.UnreadySite{Site: "c", Speaks: versions.Of(1)}
	if a := r.raise("a", 2, "1"); a.Code != answer.Unready || !slices.Equal(a.Unready(), []answer.UnreadySite{want}) {
		t.Errorf("%v, %+v", a.Code, a.Unready())
	}
	builds["c"] = 2
	r.restart("c")
	r.meet()
	builds["c"] = 1
	r.restart("c")
	r.meet()
	if a := r.raise("a", 2, "2"); a.Code != answer.Unready || !slices.Equal(a.Unready(), []answer.UnreadySite{want}) {
		t.Errorf("after c went back: %v, %+v", a.Code, a.Unready())
	}
	r.wantVersion(1, true, r.names...)
}

// TestRaiseIsLearntLate has a site miss a raise. It learns of the version as it is
// connected, before it has caught up, or from what it catches up with: the missed change,
// or the whole catalogue.
func TestRaiseIsLearntLate(t *testing.T) {
	for _, missed := range []int{0, 5000} {
		for _, told := range []bool{true, false} {
			r := newVersionRig(t, 1, nil)
			r.create("acme/vm", 30)
			r.meet()
			r.cut["c"] = true
			if a := r.raise("a", 2, "raise"); a.Code != answer.OK {
				t.Fatalf("raise: %v", a.Code)
			}
			for n := range missed {
				r.changeAsync("a", input.Change{Kind: input.DeleteEntity, Name: "none", RequestID: id("none", n)})
			}
			r.advance(5000)
			r.wantVersion(1, true, "c")
			r.cut["c"] = false
			if told {
				r.meet()
				r.wantVersion(2, true, "c")
				r.restart("c")
				r.wantVersion(2, true, "c")
			}
			r.advance(20_000)
			r.wantVersion(2, true, r.names...)
			if got := r.disks["c"].Catalogue.Version; got != 2 {
				t.Errorf("%d missed, told %v: c has stored version %d", missed, told, got)
			}
			if a := r.raise("c", 2, "raise"); a.Code != answer.OK || a.Version() != 2 {
				t.Errorf("%d missed, told %v: a repeat at c: %v, version %d", missed, told, a.Code, a.Version())
			}
		}
	}
}

// TestNewClusterBegins: a new cluster begins with the version of its builds, by its first
// change. A new site in a cluster of the first version begins with that, as it is
// connected to a site that knows.
func TestNewClusterBegins(t *testing.T) {
	r := newVersionRig(t, 2, nil)
	r.meet()
	r.wantVersion(2, false, r.names...)
	r.create("acme/vm", 30)
	r.wantVersion(2, true, r.names...)
	for _, name := range r.names {
		d := r.disks[name]
		if first := d.Changes.Values()[0]; first.Change.Begin != 2 || d.Catalogue.Version != 2 {
			t.Errorf("%s has stored version %d, and as the first change %+v", name, d.Catalogue.Version, first)
		}
	}
	r.create("acme/disk", 30)
	if second := r.disks["a"].Changes.Values()[1]; second.Change.Begin != 0 {
		t.Errorf("the second change is %+v", second)
	}

	r = newVersionRig(t, 1, nil)
	for _, name := range []core.SiteID{"b", "c"} {
		r.disks[name].Version = 2
		r.restart(name)
	}
	r.wantVersion(2, false, "b", "c")
	r.meet()
	r.wantVersion(1, true, r.names...)
	r.create("acme/vm", 30)
	r.wantVersion(1, true, r.names...)
	// The earlier version of two new builds.
	r = newVersionRig(t, 2, map[core.SiteID]versions.Version{"c": 3})
	r.disks["c"].Version = 3
	r.restart("c")
	r.meet()
	r.wantVersion(2, false, r.names...)
}

// TestOldFormUntilDecided: in a cluster of the first version, no value, snapshot or
// record has a word of versions. The words come with the raise.
func TestOldFormUntilDecided(t *testing.T) {
	r := newVersionRig(t, 1, nil)
	r.meet()
	r.cut["c"] = true
	r.create("acme/vm", 30)
	r.wantCode(r.setMode("a", "star", "mode"), answer.OK)
	r.cut["c"] = false
	r.advance(20_000)
	words := func() (sent int) {
		for _, e := range r.sent {
			texts := [][]byte{e.Message.Snapshot}
			if e.Message.Value != nil {
				texts = append(texts, e.Message.Value.Change)
			}
			for _, text := range texts {
				// Changes of the mode have versions too.
				if bytes.Contains(bytes.ReplaceAll(text, []byte(`"protocol":"star","version"`), nil), []byte(`"version"`)) || bytes.Contains(text, []byte(`"begin"`)) {
					sent++
				}
			}
		}
		return sent
	}
	if n := words(); n != 0 {
		t.Errorf("%d messages of a cluster of the first version have words of another", n)
	}
	for _, name := range r.names {
		d := r.disks[name]
		for _, ch := range d.Changes.Values() {
			if ch.Change.Version != 0 || ch.Change.Begin != 0 {
				t.Errorf("%s has stored %+v", name, ch)
			}
		}
		if d.Catalogue.Version != 0 {
			t.Errorf("%s has stored version %d", name, d.Catalogue.Version)
		}
	}
	if a := r.raise("a", 2, "raise"); a.Code != answer.OK {
		t.Fatalf("raise: %v", a.Code)
	}
	if words() == 0 {
		t.Error("the raise was not sent, so this test would find nothing")
	}
}

// TestDataOfAnotherVersion: a core refuses data that its build does not speak.
func TestDataOfAnotherVersion(t *testing.T) {
	for _, tc := range []struct {
		build versions.Version
		from  stored.Restored
		want  string
	}{
		{1, stored.Restored{Version: 2}, "the data is of version 2, this build speaks version 1 alone: the build is too old"},
		{3, stored.Restored{Version: 1}, "the data is of version 1, this build speaks versions 2 to 3: the build is too new"},
		{1, stored.Restored{Version: 1, Catalogue: &stored.Catalogue{Numbered: 1, Version: 2}}, "the data is of version 2"},
	} {
		cfg := core.Config{Self: "a", Members: []core.SiteID{"a"}, Rand: rand.New(rand.NewPCG(1, 1)), Versions: versions.Of(tc.build)}
		if _, err := core.New(cfg, tc.from); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("build %d: %v", tc.build, err)
		}
	}
}

// TestRaisedAwayFrom: a site that went back to an older build while a raise was decided
// does not follow the others, by a decision or by the whole catalogue. With the newer
// build it does.
func TestRaisedAwayFrom(t *testing.T) {
	for _, missed := range []int{0, 5000} {
		builds := map[core.SiteID]versions.Version{}
		r := newVersionRig(t, 1, builds)
		r.create("acme/vm", 30)
		r.meet()
		r.cut["c"] = true
		builds["c"] = 1
		r.restart("c")
		if a := r.raise("a", 2, "raise"); a.Code != answer.OK {
			t.Fatalf("raise: %v", a.Code)
		}
		for n := range missed {
			r.changeAsync("a", input.Change{Kind: input.DeleteEntity, Name: "none", RequestID: id("none", n)})
		}
		r.advance(5000)
		before := r.disks["c"].Catalogue.Protocol.Applied
		r.cut["c"] = false
		r.advance(20_000)
		r.wantVersion(1, true, "c")
		if now := r.disks["c"].Catalogue.Protocol.Applied; now != before {
			t.Errorf("c has gone on from instance %d to %d of the catalogue", before, now)
		}
		if !slices.ContainsFunc(r.events, func(e event.Event) bool {
			return e.Kind == event.ProtocolFault && strings.Contains(e.Err.Error(), "raised to 2, and this build speaks version 1 alone: start a build of version 2 or 3")
		}) {
			t.Error("c does not say why")
		}
		builds["c"] = 2
		r.restart("c")
		r.advance(20_000)
		r.wantVersion(2, true, r.names...)
	}
}

// TestFirstStartOfTwoBuilds: at a cluster's first start its sites learn of each other's
// versions before they vouch for each other. What they learn does not count as work done,
// so all serve, and the cluster begins with the version that all speak.
func TestFirstStartOfTwoBuilds(t *testing.T) {
	r := newRig(t, 5, nil)
	r.tweak = func(c *core.Config) {
		c.Run, c.Versions = message.Run(c.Self[0]), versions.Of(2)
		if c.Self == "e" {
			c.Versions = versions.Of(1)
		}
	}
	r.disks["e"].Version = 1
	for _, name := range r.names {
		r.restart(name)
	}
	r.wantVersion(2, false, "a", "b", "c", "d")
	r.meet()
	for _, name := range r.names {
		r.step(name, input.Wake{})
	}
	r.advance(20_000)
	for _, name := range r.names {
		if st := r.cores[name].Status(); st.Missing != 0 {
			t.Errorf("%s waits for %d sites", name, st.Missing)
		}
	}
	r.wantVersion(1, true, r.names...)
}
