package failuretest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/samya-db/samya/devcluster/ledger"
)

// memberEntity is an entity of the load.
type memberEntity struct {
	name, parent string
	limit        int64
}

// memberEntities are those of the load: a scarce one that all sites want, two that stand
// below it and beside, and one with plenty.
var memberEntities = []memberEntity{
	{name: entity, limit: 600},
	{name: "acme/small", parent: entity, limit: 40},
	{name: "acme/seats", limit: 300},
	{name: "acme/disk", limit: 6000},
}

// upward is an entity and those above it: their tokens move together.
func upward(of string) []string {
	for _, e := range memberEntities {
		if e.name == of && e.parent != "" {
			return []string{of, e.parent}
		}
	}
	return []string{of}
}

// memberAccounts are the callers' own books. They ask no site for anything.
type memberAccounts struct {
	// ledger has what is out, each entity with those below it. It bounds from below: an
	// acquire counts from its answer, a release from its beginning.
	ledger *ledger.Ledger

	mu sync.Mutex
	// own is what the callers hold of an entity itself.
	own map[string]int64
	// at is, for each site, what it was told to have acquired and not released.
	at map[siteTokens]int64
	// open are, for each entity, the tokens of which nobody knows whether the sites that
	// are left have moved them; see unclear.
	more, less map[string]int64
	// heirs has the heir of each site that has left; lost are the sites written off.
	heirs map[string]string
	lost  map[string]bool
	// losses are the times from the end of a lost machine to its write-off.
	losses []*loss
	// kills are when sites were killed.
	kills  []time.Time
	parked []parkedRelease
	counts map[string]int
	faults []string
}

// loss is the time from the end of a machine to its write-off; to is zero before that.
type loss struct{ from, to time.Time }

// overlaps reports whether a time is within a loss in part.
func (l *loss) overlaps(from, to time.Time) bool {
	return !to.Before(l.from) && (l.to.IsZero() || from.Before(l.to))
}

// parkedRelease is a release of which it was to be found out yet whether another site has
// executed it. The site that answered counts the release only if no other site has: the
// answer does not tell which of the two (docs/protocol.md, section 16).
type parkedRelease struct {
	of, site string
	tokens   int64
	at       time.Time
}

// siteTokens is an entity at a site.
type siteTokens struct{ entity, site string }

func newMemberAccounts() *memberAccounts {
	return &memberAccounts{
		ledger: ledger.New(nil), own: map[string]int64{}, at: map[siteTokens]int64{}, more: map[string]int64{}, less: map[string]int64{},
		heirs: map[string]string{}, lost: map[string]bool{}, counts: map[string]int{},
	}
}

// count adds to a counter.
func (a *memberAccounts) count(what string, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts[what] += n
}

// figure is the value of a counter.
func (a *memberAccounts) figure(what string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.counts[what]
}

// gain counts tokens as out, once it is known that a caller holds them.
func (a *memberAccounts) gain(of string, tokens int64) {
	a.move(of, ledger.Acquire, tokens)
	for _, e := range memberEntities {
		if held := a.ledger.Held(e.name); held > e.limit && slices.Contains(upward(of), e.name) {
			a.fault("%d tokens of %s are out, the limit is %d", held, e.name, e.limit)
		}
	}
}

// lose counts tokens as out no longer, before a site may hear that.
func (a *memberAccounts) lose(of string, tokens int64) { a.move(of, ledger.Release, tokens) }

func (a *memberAccounts) move(of string, kind ledger.Kind, tokens int64) {
	if tokens == 0 {
		return
	}
	for _, e := range upward(of) {
		a.ledger.Invoke(e, kind, tokens).Return(ledger.Executed)
	}
	if kind == ledger.Release {
		tokens = -tokens
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.own[of] += tokens
}

// book notes that a site has acquired tokens, or has released them below zero.
func (a *memberAccounts) book(of, site string, tokens int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range upward(of) {
		a.at[siteTokens{e, site}] += tokens
	}
}

// unclear notes that the sites that are left may have acquired up to more tokens, or
// released up to less, than was booked.
func (a *memberAccounts) unclear(of string, more, less int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range upward(of) {
		a.more[e] += more
		a.less[e] += less
	}
}

// left notes that a site has left in favour of another.
func (a *memberAccounts) left(site, heir string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heirs[site] = heir
}

// killed notes that a site is about to be killed.
func (a *memberAccounts) killed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kills = append(a.kills, time.Now())
}

// anyKilled reports whether a site was killed after a time, or so short before that it may
// still have been starting.
func (a *memberAccounts) anyKilled(after time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.kills, func(at time.Time) bool { return at.Add(2 * time.Second).After(after) })
}

// dies notes that a machine is about to be destroyed.
func (a *memberAccounts) dies(site string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lost[site] = true
	a.kills = append(a.kills, time.Now())
	a.losses = append(a.losses, &loss{from: time.Now()})
}

// lives notes that the machine that was about to be destroyed last goes on after all.
func (a *memberAccounts) lives(site string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.lost, site)
	a.losses = a.losses[:len(a.losses)-1]
}

// writtenOff notes that the callers can know of all losses.
func (a *memberAccounts) writtenOff() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.losses {
		if l.to.IsZero() {
			l.to = time.Now()
		}
	}
}

// keeper is the site that has the books of another now.
func (a *memberAccounts) keeper(site string) string {
	for a.heirs[site] != "" && !a.lost[site] {
		site = a.heirs[site]
	}
	return site
}

// isLost reports whether the books of a site are lost.
func (a *memberAccounts) isLost(site string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lost[a.keeper(site)]
}

// overlaps reports whether a call that began then and ends now was under way between the
// end of a machine and its write-off.
func (a *memberAccounts) overlaps(began time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.losses, func(l *loss) bool { return l.overlaps(began, time.Now()) })
}

// park notes a parked release that a site has answered.
func (a *memberAccounts) park(of, site string, tokens int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range upward(of) {
		a.parked = append(a.parked, parkedRelease{e, site, tokens, time.Now()})
	}
}

// fault notes an error that no caller may see.
func (a *memberAccounts) fault(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.faults = append(a.faults, time.Now().UTC().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// bounds are the bounds of what the sites that are left have acquired of an entity.
func (a *memberAccounts) bounds(of string) (low, high int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for at, tokens := range a.at {
		if at.entity == of && !a.lost[a.keeper(at.site)] {
			low += tokens
		}
	}
	elsewhere, gone := a.strayed(of)
	return low - a.less[of] - elsewhere, low + a.more[of] + gone
}

// strayed are the tokens of parked releases that may count at another site than the one that
// answered: elsewhere was answered by a lost site, and may count at a site that is left; gone
// was answered by a site that is left, and may count at a lost site, or nowhere, as nobody
// could tell any more.
func (a *memberAccounts) strayed(of string) (elsewhere, gone int64) {
	for _, p := range a.parked {
		switch {
		case p.of != of:
		case a.lost[a.keeper(p.site)]:
			elsewhere += p.tokens
		case slices.ContainsFunc(a.losses, func(l *loss) bool { return l.to.IsZero() || p.at.Before(l.to) }):
			gone += p.tokens
		}
	}
	return elsewhere, gone
}

// gone is what the callers acquired at lost sites and did not release there.
func (a *memberAccounts) gone(of string) (tokens int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for at, n := range a.at {
		if at.entity == of && a.lost[a.keeper(at.site)] {
			tokens += n
		}
	}
	return tokens
}

// held is what the callers hold of an entity itself.
func (a *memberAccounts) held(of string) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.own[of]
}

// words are the counters, in the order of their names.
func (a *memberAccounts) words() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []string
	for _, what := range slices.Sorted(maps.Keys(a.counts)) {
		all = append(all, fmt.Sprintf("%s %d", what, a.counts[what]))
	}
	return strings.Join(all, ", ")
}
