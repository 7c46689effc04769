package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/keys"
	"github.com/samya-db/samya/site/core/stored"
)

// sequenceID names a sequence of instances; the zero sequenceID is the catalogue's.
type sequenceID struct {
	entity     string
	generation uint64
}

type vote struct {
	t avantan.Instance
	b avantan.Ballot
}

// sequence is the knowledge of an observer of all sites about a sequence.
type sequence struct {
	id       sequenceID
	proposed map[vote]*avantan.Value
	accepts  map[vote]map[core.SiteID]bool
	// chosen are the values that a majority has accepted, by instance, from 1.
	chosen map[avantan.Instance]*avantan.Value
	// settled is the last instance with its chosen value in the model.
	settled avantan.Instance

	// limits are the limits after each instance, from 0. holdings are the tokens that
	// each site holds, has set aside and has out in all, in the order of the sites.
	limits []limitState
	// aside is the surplus that is set aside after each instance, from 0.
	aside []core.Tokens
	// written are the tokens written off after each instance, from 0.
	written []writtenOff
	// debts are the entity's debts after each instance, from 0. owedSince are the
	// instances that last raised the debt, and raises the sums of all raises of the limit
	// until then.
	debts     []core.Tokens
	owedSince []avantan.Instance
	raises    []core.Tokens
	holdings  [][]core.Tokens
	// voters are the versions of the view after each instance, from 0.
	voters []uint16
	// ceiling is how many tokens may be out at most after a grant, less all raises, as
	// told by sites; nil if nothing was told.
	ceiling *core.Tokens
	// stars are the star instances by name, views the sites' parts in them by site:
	// durable and handed over.
	stars map[star.ID]*starInstance
	views [][2]starView
	// direct are the direct transfers; nil if there were none.
	direct *transfers
	// handoffs are the bequests of sites that leave; nil if there were none.
	handoffs *handoffs
	// wentBy are the versions of the roster that sites' records go by: durable and handed
	// over.
	wentBy [][2]uint16
	// promises are the last durable states by site.
	promises []promise
	// drifts are the effects of the reconciliations, by instance.
	drifts map[avantan.Instance]drift
	// results are the decided changes. clock is the latest time at which a decided change
	// was asked for: see stored.ChangeTimes. No change runs twice.
	results map[string]bool
	clock   int64
	// ran is the version after each change that had an effect, as sites have stored.
	ran map[string]uint64
	// lowered is set once a limit was lowered, raised is the sum of all raises.
	lowered bool
	raised  core.Tokens
	// shifted is set once an entity came to stand below this entity or left. moved is how
	// many tokens it took along in or out of the sites' books.
	shifted bool
	moved   core.Tokens
	// inDebt says which sites are in debt.
	inDebt []bool
}

type limitState struct {
	limit   core.Tokens
	version uint64
}

func newSequence(id sequenceID) *sequence {
	return &sequence{
		id: id, proposed: make(map[vote]*avantan.Value), accepts: make(map[vote]map[core.SiteID]bool),
		chosen: make(map[avantan.Instance]*avantan.Value), results: make(map[string]bool),
		ran: make(map[string]uint64), drifts: make(map[avantan.Instance]drift),
	}
}

// created gives a new entity its limit and the voters their equal shares of it. The
// remainder is spread over the first voters, a token each. A template of a small limit is at
// its home.
func (q *sequence) created(limit core.Tokens, template bool, sites []core.SiteID, voters avantan.View, version uint16) {
	q.voters = []uint16{version}
	q.limits, q.aside, q.debts = []limitState{{limit, 1}}, []core.Tokens{0}, []core.Tokens{0}
	q.owedSince, q.raises = []avantan.Instance{0}, []core.Tokens{0}
	q.written = []writtenOff{{appraised: version}}
	shares := make([]core.Tokens, len(sites))
	for i, v := range voters {
		at := slices.Index(sites, v)
		if shares[at] = limit / core.Tokens(len(voters)); core.Tokens(i) < limit%core.Tokens(len(voters)) {
			shares[at]++
		}
	}
	if home := slices.Index(sites, keys.Home(q.id.entity, int64(limit), voters)); template && home >= 0 {
		clear(shares)
		shares[home] = limit
	}
	q.holdings = [][]core.Tokens{shares}
}

// accept notes that a site has durably accepted a value.
func (q *sequence) accept(v vote, site core.SiteID, value *avantan.Value, quorum int) error {
	if value != nil {
		if old := q.proposed[v]; old != nil && !old.Equal(value) {
			return fmt.Errorf("%v: two values at %v: %+v and %+v", q.id, v, old, value)
		}
		q.proposed[v] = value
	}
	if q.accepts[v] == nil {
		q.accepts[v] = make(map[core.SiteID]bool)
	}
	q.accepts[v][site] = true
	if len(q.accepts[v]) < quorum {
		return nil
	}
	value = q.proposed[v]
	if value == nil {
		return fmt.Errorf("%v: accepted at %v by a majority, proposed by nobody", q.id, v)
	}
	if old := q.chosen[v.t]; old != nil && !old.Equal(value) {
		return fmt.Errorf("%v: instance %d: chosen %+v and %+v", q.id, v.t, old, value)
	}
	q.chosen[v.t] = value
	return nil
}

// limitChange is the form in which an entity's sequence decides its limit.
type limitChange struct {
	RequestID string      `json:"request_id"`
	Limit     core.Tokens `json:"limit"`
	Expected  uint64      `json:"expected"`
	// Surplus, if not 0, is set aside, and the limit stays as it is.
	Surplus core.Tokens `json:"surplus"`
	// View, if not 0, is the version of the roster whose view follows; nothing else changes.
	View uint16 `json:"view"`
	// Lost, if not nil, writes tokens off, and the limit stays as it is.
	Lost *lostTokens `json:"lost"`
	// Truth, if not nil, reconciles the entity, and the limit stays as it is.
	Truth *truth `json:"truth"`
	stored.ChangeTimes
}

// over reports whether a change is decided after its time.
func over(t *stored.ChangeTimes, clock int64) bool { return t.NotAfter != 0 && t.NotAfter < clock }

// settle applies the chosen values to the model of an entity.
func (q *sequence) settle(o *observer) error {
	for q.limits != nil && q.chosen[q.settled+1] != nil {
		v := q.chosen[q.settled+1]
		now, aside, debt := q.limits[q.settled], q.aside[q.settled], q.debts[q.settled]
		var delta core.Tokens
		voters, written := q.voters[q.settled], q.written[q.settled]
		reconciled := false
		if len(v.Change) > 0 {
			var ch limitChange
			if err := json.Unmarshal(v.Change, &ch); err != nil {
				return fmt.Errorf("%v: a limit change: %w", q.id, err)
			}
			if ch.View > 0 {
				voters = max(voters, ch.View)
			} else if !q.results[ch.RequestID] && !over(&ch.ChangeTimes, q.clock) {
				q.results[ch.RequestID] = true
				q.clock = max(q.clock, ch.Asked)
				switch {
				case ch.Expected != 0 && ch.Expected != now.version:
				case ch.Lost != nil && (ch.Lost.Version > voters || ch.Lost.Version <= written.appraised):
				case ch.Lost != nil:
					written.tokens += ch.Lost.Tokens
					written.appraised = ch.Lost.Version
					now.version++
					o.s.report.WrittenOff++
				case ch.Truth != nil:
					reconciled = true
					delta = o.reconciles(q, v, ch.Truth) + written.tokens
					written.back += written.tokens
					written.tokens = 0
					now.version++
				case ch.Surplus > 0:
					delta = -ch.Surplus
					aside += ch.Surplus
					o.asideWithin(q, aside)
					now.version++
				default:
					delta = ch.Limit - now.limit
					now = limitState{ch.Limit, now.version + 1}
				}
			}
		}
		q.lowered = q.lowered || delta < 0
		if reconciled {
			// More in use than was counted needs no grant.
			q.raised += max(-q.drifts[q.settled+1].tokens, 0)
		} else {
			q.raised += max(delta, 0)
		}
		holdings := slices.Clone(q.holdings[q.settled])
		if len(v.Contributions) > 0 {
			grants, owed := o.grants(q, v, delta, debt)
			debt = owed
			if grants == nil {
				return nil
			}
			for i, c := range v.Contributions {
				holdings[slices.Index(o.s.names, c.Site)] += grants[i] - c.Offered
			}
			holdings[slices.Index(o.s.names, v.Contributions[0].Site)] -= q.drifts[q.settled+1].tokens
		}
		q.voters, q.written = append(q.voters, voters), append(q.written, written)
		q.limits, q.aside, q.holdings = append(q.limits, now), append(q.aside, aside), append(q.holdings, holdings)
		since := q.owedSince[q.settled]
		switch {
		case debt == 0:
			since = 0
		case debt > q.debts[q.settled]:
			since = q.settled + 1
		}
		q.debts, q.owedSince, q.raises = append(q.debts, debt), append(q.owedSince, since), append(q.raises, q.raised)
		q.settled++
	}
	return nil
}

// catalogueState is the catalogue after an instance, by the model.
type catalogueState struct {
	generation, numbered uint64
	entities             map[string]uint64
	// parents maps an entity to its parent's name; an entity without a parent is absent.
	parents map[string]string
	mode    answer.DecidedMode
	roster  stored.Roster
	// version is the version of the cluster; 0 in a run without an upgrade.
	version versions.Version
}

// catalogueModel settles the catalogue's chosen values.
type catalogueModel struct {
	states []catalogueState
	// results are the outcomes by request id.
	results map[string]catalogueResult
	// clock is as in sequence; ran is the number of each change that had an effect.
	clock int64
	ran   map[string]uint64
	// switches counts the changes of the mode to another mode, moves the moves below
	// another parent, and prunes the deletions with everything below. misplaced counts
	// the changes refused for where an entity stands or was to stand.
	switches, moves, prunes, misplaced int
	// shifted are the entities that an entity came to stand below, or left, since shifted
	// was last read.
	shifted []sequenceID
}

type catalogueResult struct {
	code       answer.Code
	generation uint64
}

// creation is an entity that a chosen value has created.
type creation struct {
	id    sequenceID
	limit core.Tokens
	// roster is the roster at the creation.
	roster stored.Roster
}

// settle takes in the next chosen value and returns the entities it creates.
func (m *catalogueModel) settle(v *avantan.Value) ([]creation, error) {
	var changes []stored.CatalogueChange
	if len(v.Change) > 0 {
		if err := json.Unmarshal(v.Change, &changes); err != nil {
			return nil, fmt.Errorf("changes of the catalogue: %w", err)
		}
	}
	last := m.states[len(m.states)-1]
	next := catalogueState{last.generation, last.numbered, maps.Clone(last.entities), maps.Clone(last.parents), last.mode, last.roster, last.version}
	var created []creation
	for _, ch := range changes {
		if _, repeated := m.results[ch.RequestID]; repeated || over(&ch.ChangeTimes, m.clock) {
			continue
		}
		m.clock = max(m.clock, ch.Asked)
		next.numbered++
		g, found := next.entities[ch.Name]
		r := catalogueResult{generation: g}
		switch {
		case ch.Kind == input.SetMode:
			r = m.settleMode(&next, &ch)
		case ch.Kind == input.RaiseVersion:
			r = settleRaise(&next, &ch)
		case ch.Kind.OfSites():
			r = m.settleSite(&next, &ch)
		case ch.Kind == input.CreateEntity && found:
			r.code = answer.Exists
		case ch.Kind == input.CreateEntity:
			if r.code = next.fits(ch.Name, ch.Parent); r.code != answer.OK {
				m.misplaced++
				break
			}
			next.generation++
			r.generation = next.generation
			next.entities[ch.Name] = r.generation
			next.put(ch.Name, ch.Parent)
			created = append(created, creation{sequenceID{ch.Name, r.generation}, ch.Limit, next.roster})
		case !found:
			r.code = answer.NotFound
		case ch.Generation != 0 && ch.Generation != g:
			r.code = answer.Mismatch
		case ch.Kind == input.MoveEntity:
			r.code = m.settleMove(&next, &ch)
		default:
			r.code = m.settleDelete(&next, &ch)
		}
		m.results[ch.RequestID] = r
	}
	m.states = append(m.states, next)
	return created, nil
}
