// Package dryrun works out the effects of a change from reads of the present state. The
// package is pure, asks nobody, and refuses to promise: the sites decide the change itself, and
// may have another state by then.
package dryrun

import (
	"fmt"
	"slices"
	"strconv"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// number is a count with commas between thousands.
func number(n int64) string {
	s := strconv.FormatInt(n, 10)
	first := 0
	if n < 0 {
		first = 1
	}
	for at := len(s) - 3; at > first; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}

// count is a number with its noun, which takes an s for the plural.
func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if y, is := cutY(noun); is {
		return number(n) + " " + y + "ies"
	}
	return number(n) + " " + noun + "s"
}

func cutY(noun string) (string, bool) {
	if n := len(noun) - 1; n > 0 && noun[n] == 'y' {
		return noun[:n], true
	}
	return noun, false
}

// plan collects the effects of a change.
type plan struct{ *samyav1.DryRun }

func (p plan) say(format string, args ...any) {
	p.Effects = append(p.Effects, fmt.Sprintf(format, args...))
}

// Creation is the state before the creation of an entity.
type Creation struct {
	Entity *samyav1.Entity
	// Parent is the entity to stand below; nil for none.
	Parent *samyav1.Entity
	// Sites are the members, with their health.
	Sites []*samyav1.Site
}

// Create works out the effects of a creation.
func Create(c Creation) *samyav1.DryRun {
	p := plan{&samyav1.DryRun{Complete: true}}
	e := c.Entity
	period := ""
	if e.GetPer() != "" {
		period = " in " + e.GetPer()
	}
	p.say("%s is created with a limit of %s%s.", e.GetName(), count(e.GetLimit(), "token"), period)
	names := make([]string, 0, len(c.Sites))
	for _, s := range c.Sites {
		names = append(names, s.GetName())
	}
	slices.Sort(names)
	shares := split(e.GetLimit(), len(names))
	for i, n := range names {
		p.Sites = append(p.Sites, &samyav1.DryRunShare{Site: n, LeftAfter: shares[i]})
	}
	if e.GetKeys() {
		p.say("Each name below it is a quota of its own, from its first use on.")
	} else if len(names) > 0 {
		p.say("Each of %s gets about %s to grant, and tokens move to where they are asked for.", count(int64(len(names)), "site"), count(shares[len(shares)-1], "token"))
	}
	if up := c.Parent; up != nil {
		p.say("What is acquired of %s is acquired of %s too, and of the entities above it.", e.GetName(), up.GetName())
		if e.GetLimit() > up.GetLimit() {
			p.say("No more than %s can be out at once: that is the limit of %s.", count(up.GetLimit(), "token"), up.GetName())
		}
	}
	for _, s := range c.Sites {
		if s.GetHealth() == samyav1.SiteHealth_SITE_HEALTH_UNREACHABLE {
			p.Complete = false
			p.say("Site %s does not answer now: its share is of no use until it is back.", s.GetName())
		}
	}
	return p.DryRun
}

// Limit works out the effects of another limit on an entity with a usage.
func Limit(e *samyav1.Entity, u *samyav1.Usage, limit int64, parent *samyav1.Entity) *samyav1.DryRun {
	p := plan{&samyav1.DryRun{Complete: u.GetComplete()}}
	old := e.GetLimit()
	switch {
	case limit == old:
		p.say("The limit of %s stays %s; its version rises.", e.GetName(), count(limit, "token"))
	case limit > old:
		p.say("The limit of %s rises by %s from %s to %s.", e.GetName(), number(limit-old), number(old), count(limit, "token"))
	default:
		p.say("The limit of %s falls by %s from %s to %s.", e.GetName(), number(old-limit), number(old), count(limit, "token"))
	}
	free := limit - u.GetSurplus() - u.GetWrittenOff() - u.GetAcquired()
	p.TokensShort = max(0, -free)
	p.ReleasesNeeded = p.TokensShort
	switch {
	case p.TokensShort > 0 && e.GetPer() != "":
		p.say("%s more than the limit are granted already: nothing is granted until they have come back by the clock.", count(p.TokensShort, "token"))
	case p.TokensShort > 0:
		p.say("%s are out, %s more than the new limit: nothing is granted until so many are released.", count(u.GetAcquired(), "token"), number(p.TokensShort))
	default:
		p.say("%s are out, and %s can be granted afterwards.", count(u.GetAcquired(), "token"), number(free))
	}
	if limit < old && p.TokensShort == 0 && free < old/20 {
		p.say("Less than a twentieth of the old limit is left: acquires wait or are refused soon.")
	}
	p.shares(u, max(0, free))
	if u.GetDebt() > 0 && p.TokensShort == 0 {
		p.say("The entity's debt of %s is paid.", count(u.GetDebt(), "token"))
	}
	if parent != nil && limit > parent.GetLimit() {
		p.say("No more than %s can be out at once: that is the limit of %s above it.", count(parent.GetLimit(), "token"), parent.GetName())
	}
	if n := e.GetChildren(); n > 0 {
		p.say("The limits of %s right below stay as they are.", count(int64(n), "entity"))
	}
	for _, s := range u.GetShares() {
		if !s.GetKnown() || s.GetAge().AsDuration() > 0 {
			p.Complete = false
			p.say("Site %s does not answer now: until it hears of the change it grants what it holds.", s.GetSite())
		}
	}
	return p.DryRun
}

// shares estimates the tokens left at each site once free tokens are left in all: as many
// times more or fewer everywhere, or equal parts where none are left.
func (p plan) shares(u *samyav1.Usage, free int64) {
	var left int64
	for _, s := range u.GetShares() {
		left += max(0, s.GetLeft())
	}
	equal := split(free, len(u.GetShares()))
	for i, s := range u.GetShares() {
		after := equal[i]
		if left > 0 {
			after = int64(float64(free) * float64(max(0, s.GetLeft())) / float64(left))
		}
		p.Sites = append(p.Sites, &samyav1.DryRunShare{Site: s.GetSite(), LeftBefore: s.GetLeft(), LeftAfter: after})
	}
}

// split is a limit in equal parts, the remainder in single tokens to the first.
func split(limit int64, parts int) []int64 {
	all := make([]int64, parts)
	for i := range all {
		if all[i] = limit / int64(parts); int64(i) < limit%int64(parts) {
			all[i]++
		}
	}
	return all
}

// Drain works out the effects of a member's leaving. Heir takes over from the site; held tells
// the site's tokens, nil if the site does not answer.
func Drain(site, heir string, members []*samyav1.Member, held *samyav1.SiteSurvey) *samyav1.DryRun {
	p := plan{&samyav1.DryRun{Complete: held != nil}}
	p.say("Site %s takes no new acquires from then on: app managers ask other sites.", site)
	if held != nil {
		p.say("It hands over to %s what it holds of %s: %s left to grant, %s out, and %s.", heir, count(held.GetEntities(), "entity"),
			count(held.GetTokensLeft(), "token"), number(held.GetTokensOut()), count(held.GetLeases(), "lease"))
		if held.GetWaiting() > 0 {
			p.say("%s wait there now.", count(held.GetWaiting(), "acquire"))
		}
		p.Sites = append(p.Sites, &samyav1.DryRunShare{Site: site, LeftBefore: held.GetTokensLeft()})
	} else {
		p.say("Site %s does not answer now: it can hand nothing over before it is back.", site)
	}
	left := int64(0)
	for _, m := range members {
		if m.GetName() != site && m.GetState() == samyav1.MemberState_MEMBER_STATE_MEMBER {
			left++
		}
	}
	p.say("%s are left, and %s of them are a majority.", count(left, "member"), number(left/2+1))
	if left < 3 {
		p.say("With %s the loss of one stops every change and every move of tokens.", count(left, "member"))
	}
	p.say("The site leaves by itself once all is handed over and its records of requests may be forgotten. Its name is never used again.")
	p.say("Until then the drain can be ended: the site is a member again.")
	return p.DryRun
}

// Keep works out the effects of the end of a drain.
func Keep(site string) *samyav1.DryRun {
	p := plan{&samyav1.DryRun{Complete: true}}
	p.say("Site %s is a member again, and takes acquires. What it has handed over stays where it is; tokens come as they are asked for.", site)
	return p.DryRun
}

// Nothing says that a change would change nothing.
func Nothing(why string) *samyav1.DryRun {
	p := plan{&samyav1.DryRun{Complete: true}}
	p.say("Nothing changes: %s.", why)
	return p.DryRun
}
