package core

import (
	"fmt"

	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// can reports whether messages and records may have the form of a version: the cluster
// has come to it. Nothing that only that version knows is sent or stored before.
func (c *common) can(v versions.Version) bool { return c.versions.Cluster >= v }

// since is the version of clusters from which on their sites know a kind of change.
func since(ch *input.Change) versions.Version {
	kind := ch.Kind
	if kind.OfSites() || kind == input.Reconcile || kind == input.RescueEntity {
		return versions.Members
	}
	if !ch.Rate.None() {
		return versions.Members
	}
	return versions.First
}

// tooEarly refuses a change that an older build, which a site may have or go back to, could
// not apply.
func (c *common) tooEarly(ch *input.Change) bool {
	needs := since(ch)
	if c.can(needs) {
		return false
	}
	c.reply(ch.Call, answer.Answer{Code: answer.TooEarly, Details: &answer.Details{Version: needs}})
	return true
}

// know takes up news of the version of the cluster.
func (c *common) know(v versions.Version, begun bool) {
	known := versions.Speaker{Range: c.cfg.Versions, Cluster: v, Begun: begun}
	if known == c.versions {
		return
	}
	c.learnt = c.learnt || v != c.versions.Cluster
	c.versions = known
	c.out.Events = append(c.out.Events, event.Event{Kind: event.VersionKnown, Version: known})
}

// speaks takes up the versions that another member tells. A site that has missed a
// decision learns of it here, before it sends that member anything in an older form.
func (c *cataloguing) speaks(in input.Speaks) {
	if !c.roster.knows(in.From) || versions.Judge(string(c.cfg.Self), c.versions, string(in.From), in.Speaker) != nil {
		return
	}
	c.cat.speak[in.From] = in.Speaker.Range
	c.know(c.versions.Hear(in.Speaker))
}

// restoreVersion takes up the version that the data knows. Data of the first version has
// no word of versions.
func (c *cataloguing) restoreVersion(from *stored.Restored) error {
	var decided versions.Version
	if from.Catalogue != nil {
		decided = versionOf(from.Catalogue.Version, from.Catalogue.Numbered)
	}
	c.cat.version = decided
	known := max(from.Version, decided)
	c.versions = versions.Speaker{Range: c.cfg.Versions, Cluster: known, Begun: decided != 0 || known == versions.First}
	if known == 0 {
		c.versions.Cluster = c.cfg.Versions.Newest
	}
	return c.cfg.Versions.Data(c.versions.Cluster)
}

// versionOf returns the version of a cluster from its record, and the number of changes
// decided.
func versionOf(recorded versions.Version, numbered uint64) versions.Version {
	if numbered == 0 {
		return 0
	}
	return max(versions.First, recorded)
}

// recordedVersion is the inverse: records of the first version have no word of it.
func (cat *catalogue) recordedVersion() versions.Version {
	if cat.version == versions.First {
		return 0
	}
	return cat.version
}

// begin returns the Begin of the first change of a cluster; 0 for other changes.
func (c *cataloguing) begin() versions.Version {
	if c.cat.version != 0 || !c.can(versions.Members) {
		return 0
	}
	return c.versions.Cluster
}

// settleBegin takes up the version with which the cluster begins, from its first change.
func (cat *catalogue) settleBegin(ch *stored.CatalogueChange) {
	if cat.version == 0 {
		cat.setVersion(max(versions.First, ch.Begin))
	}
}

func (cat *catalogue) setVersion(v versions.Version) {
	cat.version = v
	if v != 0 {
		cat.c.know(cat.c.versions.Hear(versions.Speaker{Cluster: v, Begun: true}))
	}
}

// settleVersion carries out a decided raise of the version: by one, or not at all. A
// raise to the present version has nothing to do.
func (cat *catalogue) settleVersion(ch *stored.CatalogueChange) (answer.Code, uint64) {
	switch ch.Version {
	case cat.version:
	case cat.version + 1:
		cat.setVersion(ch.Version)
	default:
		return answer.Mismatch, uint64(cat.version)
	}
	return answer.OK, uint64(cat.version)
}

// answeredRaise answers a raise of the version that needs no decision, or must not be
// proposed: its builds would be refused afterwards.
func (c *cataloguing) answeredRaise(ch *input.Change) bool {
	now := c.versions.Cluster
	d := &answer.Details{Version: now}
	switch {
	case ch.Version == now && c.versions.Begun:
		c.reply(ch.Call, answer.Answer{Details: d})
	case ch.Version != now+1 && ch.Version != now:
		c.reply(ch.Call, answer.Answer{Code: answer.Mismatch, Details: d})
	default:
		if d.Unready = c.unready(ch.Version); len(d.Unready) == 0 {
			return false
		}
		c.reply(ch.Call, answer.Answer{Code: answer.Unready, Details: d})
	}
	return true
}

// unready are the members that have not told that they speak a version, or do not seem to
// be up: they may come back with another build.
func (c *cataloguing) unready(v versions.Version) []answer.UnreadySite {
	var lacking []answer.UnreadySite
	for _, m := range c.roster.all() {
		speaks := c.cat.speak[m]
		if m == c.cfg.Self {
			speaks = c.cfg.Versions
		}
		if !speaks.Speaks(v) || m != c.cfg.Self && !c.seemsUp(m) {
			lacking = append(lacking, answer.UnreadySite{Site: m, Speaks: speaks})
		}
	}
	return lacking
}

// speaksAll refuses changes after which this build would not understand the others.
func (c *cataloguing) speaksAll(changes []stored.CatalogueChange) error {
	for i := range changes {
		if err := c.speaksVersion(max(changes[i].Version, changes[i].Begin)); err != nil {
			return err
		}
	}
	return nil
}

func (c *cataloguing) speaksVersion(v versions.Version) error {
	if v <= c.cfg.Versions.Newest {
		return nil
	}
	return fmt.Errorf("the version of the cluster is raised to %d, and this build speaks %v: start a build of version %d or %d",
		v, c.cfg.Versions, v, v+1)
}
