package sim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// A run with an upgrade begins with the data of a cluster of the version before. Each
// site has a build of that version or of the next. At restarts sites get the other build,
// forth and back, until the version is raised. The administrator asks for the raise from a
// random time on. Whatever only the next version knows must be neither sent nor stored
// before the raise is decided.
//
// Links are as sites have them: two sites hear of each other's versions before the first
// message of a life, and builds that cannot work together exchange none.

// upgradingOf is how many seeds there are for each seed with an upgrade.
const upgradingOf = 3

// newest is the version of the build of this tree, and older the version before.
var newest, older = versions.Own().Newest, versions.Own().Oldest

// upgrade is the upgrade of a run.
type upgrade struct {
	s *sim
	// r draws the builds, so that all else is drawn as without an upgrade.
	r *rand.Rand
	// heard is what each site has heard of each other, by the lives of both.
	heard [][]hearing
}

// hearing is what a site has told another of its versions.
type hearing struct {
	teller, listener int
	told             versions.Speaker
}

// startUpgrade has a run begin with an upgrade, if the run is to have one.
func (s *sim) startUpgrade() {
	if !s.o.Upgrades || s.o.Hungry || s.o.Disk != nil || len(s.nodes) == 1 || s.o.Seed%upgradingOf != 1 || older == newest {
		return
	}
	s.report.Upgrades = 1
	s.observe.catalogue.states[0].version = older
	u := &upgrade{s: s, r: rand.New(rand.NewPCG(s.o.Seed, 11))}
	for range s.nodes {
		u.heard = append(u.heard, make([]hearing, len(s.nodes)))
	}
	s.upgrade = u
	for _, n := range s.nodes {
		n.durable.Version = older
		u.fit(n, older)
		if n.kept != nil {
			n.kept.open() // makes the data
		}
		u.fit(n, older+versions.Version(u.r.IntN(2)))
	}
	s.after(u.r.Int64N(s.faultsEnd), u.raise)
}

// raise has the administrator ask for the raise, again and again until it is decided.
func (u *upgrade) raise() {
	s := u.s
	if s.observe.catalogue.last().version == newest {
		return
	}
	s.issue(&op{kind: raise, wait: micros(u.r.IntN(8000)) * millisecond, site: u.r.IntN(len(s.founders)), once: true})
	s.after(2*second, u.raise)
}

// rebuild draws the build with which a site starts next. Data of the next version needs
// the next build. A site may go back just as the raise is decided: it then follows
// nobody until it has the next build again.
func (u *upgrade) rebuild(n *node) {
	if u == nil {
		return
	}
	build := newest
	back := 500
	if u.s.observe.catalogue.last().version == newest {
		back = 200
	}
	if n.drained.Version == older && !u.s.healed && u.r.IntN(1000) < back {
		build = older
	}
	if build != n.cfg.Versions.Newest {
		u.s.report.Exchanges++
	}
	u.fit(n, build)
}

// fit gives a site that does not run a build.
func (u *upgrade) fit(n *node, build versions.Version) {
	n.cfg.Versions = versions.Of(build)
	if n.kept != nil {
		n.kept.options.Versions = n.cfg.Versions
	}
}

// tooOld reports whether a site's build is too old for its data, whose version was durable
// before the site crashed. The operator starts the next build then, as the error says.
func (u *upgrade) tooOld(n *node, err error) bool {
	if u == nil || n.cfg.Versions.Newest == newest || !strings.Contains(err.Error(), "the build is too old") {
		return false
	}
	u.fit(n, newest)
	return true
}

// follow gives a site the next build if its data is of the next version.
func (u *upgrade) follow(n *node, of versions.Version) {
	if u != nil && of > n.cfg.Versions.Newest {
		u.fit(n, newest)
	}
}

// finish has all sites start with the next build.
func (u *upgrade) finish() {
	if u == nil {
		return
	}
	for _, n := range u.s.nodes {
		if n.cfg.Versions.Newest == newest || n.out {
			continue
		}
		if n.up {
			n.crash()
		}
		if u.s.violation != nil {
			return
		}
		u.fit(n, newest)
		n.boot()
	}
}

// links reports whether a message of a site reaches another: their builds work together.
// Each hears of the other's versions first.
func (u *upgrade) links(from, to *node) bool {
	if u == nil || !to.up {
		return true
	}
	a, b := from.speaks, to.speaks
	if versions.Judge(string(to.id), b, string(from.id), a) != nil {
		u.s.report.Apart++
		return false
	}
	u.tell(from, to)
	if from.up {
		u.tell(to, from)
	}
	return u.s.violation == nil
}

// tell tells a site of another's versions, as the two connect, and later by gossip.
func (u *upgrade) tell(from, to *node) {
	h := &u.heard[to.i][from.i]
	connects := h.teller != from.life || h.listener != to.life
	if now := (hearing{from.life, to.life, from.speaks}); *h != now && (connects || u.r.IntN(4) == 0) {
		*h = now
		to.step(input.Speaks{From: from.id, Speaker: from.speaks})
	}
}

// toldVersions takes up what a site tells of its versions once a batch is durable.
func (n *node) toldVersions(events []event.Event) {
	for i := range events {
		if events[i].Kind == event.VersionKnown {
			n.speaks = events[i].Version
		}
	}
}

// leftBehind reports whether a site has a build that does not follow the raise.
func (u *upgrade) leftBehind(n *node) bool { return u != nil && n.cfg.Versions.Newest == older }

// raised checks that all sites have followed the raise.
func (u *upgrade) raised() {
	if u == nil {
		return
	}
	for _, n := range u.s.inside() {
		if got := n.status.Versions; got.Cluster != newest || !got.Begun || n.drained.Version != newest {
			u.s.fail(Liveness, "after healing, %s knows %+v of the version, its data is of version %d", n.id, got, n.drained.Version)
		}
	}
}

// raiseAnswered checks the answer to a raise.
func (o *observer) raiseAnswered(n *node, p *op, a *answer.Answer) {
	now := o.catalogue.last().version
	switch a.Code {
	case answer.OK:
		p.decided = true
		if now != newest || a.Version() != newest {
			o.s.fail(Answers, "%s answers %v: OK, version %d; decided is version %d", n.id, p, a.Version(), now)
		}
	case answer.Unready:
		o.s.report.Unready++
		if len(a.Unready()) == 0 {
			o.s.fail(Answers, "%s answers %v: it waits for nobody", n.id, p)
		}
	case answer.Mismatch:
		o.s.fail(Answers, "%s answers %v: mismatch, it knows version %d", n.id, p, a.Version())
	default:
		o.s.fail(Answers, "%s answers %v: %v", n.id, p, a.Code)
	}
}

// early reports whether the version is not raised yet.
func (o *observer) early() bool { return o.s.upgrade != nil && o.catalogue.last().version == older }

// newForm names what only the next version knows in changes of the catalogue; empty for
// nothing.
func newForm(changes []stored.CatalogueChange) string {
	for i := range changes {
		switch ch := &changes[i]; {
		case ch.Kind.OfSites():
			return "a change of kind " + string(ch.Kind)
		case ch.Begin != 0:
			return fmt.Sprintf("a change with which version %d begins", ch.Begin)
		}
	}
	return ""
}

// sentEarly checks a message that leaves a site before the raise.
func (o *observer) sentEarly(from *node, e *message.Envelope) {
	if !o.early() || e.Claims != nil || e.Vouch != nil || e.Gossip != nil || e.Audit != nil || e.Star != nil || e.Transfer != nil {
		return
	}
	var found string
	if v := e.Message.Value; v != nil && len(v.Change) > 0 && e.Entity == "" {
		var changes []stored.CatalogueChange
		_ = json.Unmarshal(v.Change, &changes) // what cannot be read is found elsewhere
		found = newForm(changes)
	} else if v != nil && len(v.Change) > 0 {
		found = newLimitForm(v.Change)
	}
	if len(e.Message.Snapshot) > 0 && found == "" {
		found = newSnapshot(e.Message.Snapshot)
	}
	if found != "" {
		o.s.fail(Versions, "%s sends %s in a cluster of version %d", from.id, found, older)
	}
}

// newLimitForm names what only the next version knows in a change of an entity.
func newLimitForm(change []byte) string {
	var ch limitChange
	_ = json.Unmarshal(change, &ch)
	switch {
	case ch.View != 0:
		return "the adoption of a view"
	case ch.Truth != nil:
		return "a reconciliation"
	}
	return ""
}

// newSnapshot names what only the next version knows in a snapshot: of the catalogue, or
// of an entity.
func newSnapshot(raw []byte) string {
	var s struct {
		Missed []stored.Change
		Whole  map[string]json.RawMessage
		fields map[string]json.RawMessage
	}
	_ = json.Unmarshal(raw, &s)
	_ = json.Unmarshal(raw, &s.fields)
	for i := range s.Missed {
		if found := newForm([]stored.CatalogueChange{s.Missed[i].Change}); found != "" {
			return found
		}
	}
	for _, word := range []string{"roster", "begin", "voters", "born", "written_off"} {
		if _, there := s.Whole[word]; there {
			return "a catalogue with the word " + word
		}
		if _, there := s.fields[word]; there {
			return "a snapshot with the word " + word
		}
	}
	if _, there := s.Whole["version"]; there {
		return "a catalogue with its version"
	}
	return ""
}

// storedEarly checks the records of a site before the raise.
func (o *observer) storedEarly(n *node, r *stored.Records) {
	if !o.early() {
		return
	}
	var found string
	changes := make([]stored.CatalogueChange, len(r.Changes))
	for i := range r.Changes {
		changes[i] = r.Changes[i].Change
	}
	switch c := r.Catalogue; {
	case r.Version > older:
		found = fmt.Sprintf("version %d", r.Version)
	case newForm(changes) != "":
		found = newForm(changes)
	case c != nil && c.Version != 0:
		found = fmt.Sprintf("a catalogue of version %d", c.Version)
	case c != nil && c.Roster.Version != 0:
		found = "a roster"
	}
	if i := slices.IndexFunc(r.Entities, func(e stored.Entity) bool { return e.Voters != 0 || e.Born != 0 || e.WrittenOff != 0 }); i >= 0 && found == "" {
		found = fmt.Sprintf("%+v", r.Entities[i])
	}
	if found != "" {
		o.s.fail(Versions, "%s stores %s in a cluster of version %d", n.id, found, older)
	}
}

// checkVersion compares the version in a catalogue with the model's: that of the first
// version has no word of it.
func (o *observer) checkVersion(n *node, c *stored.Catalogue, want versions.Version) {
	if o.s.upgrade == nil {
		return
	}
	if want == versions.First {
		want = 0
	}
	if c.Version != want {
		o.s.fail(Catalogue, "%s: version after instance %d of the catalogue: %d, want %d", n.id, c.Protocol.Applied, c.Version, want)
	}
}

// settleRaise applies a decided raise, and returns its result.
func settleRaise(next *catalogueState, ch *stored.CatalogueChange) catalogueResult {
	if ch.Version == next.version+1 {
		next.version++
	}
	r := catalogueResult{generation: uint64(next.version)}
	if ch.Version != next.version {
		r.code = answer.Mismatch
	}
	return r
}
