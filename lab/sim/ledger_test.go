package sim

import (
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// TestSurplusOfCareless: clients that release tokens nobody has bring surpluses, and no
// more is set aside than they released.
func TestSurplusOfCareless(t *testing.T) {
	var sum Report
	for _, mode := range Modes() {
		for seed := uint64(9001); seed < 9200 && (seed < 9009 || sum.SetAside == 0); seed += 4 {
			r, err := Run(Options{Seed: seed, Sites: 5, Protocol: mode, Trees: true})
			if err != nil {
				t.Fatal(err)
			}
			sum.Add(r)
		}
	}
	if sum.Careless < 20 || sum.SetAside == 0 {
		t.Errorf("%d careless releases, %d surpluses set aside", sum.Careless, sum.SetAside)
	}
}

// TestSurplusByClients: the clients' ledger bounds the tokens set aside.
func TestSurplusByClients(t *testing.T) {
	first, second := sequenceID{"e", 1}, sequenceID{"e", 2}
	for name, tc := range map[string]struct {
		play   func(s *sim)
		id     sequenceID
		aside  core.Tokens
		wanted bool
	}{
		"nothing missing": {func(s *sim) {
			s.observe.gotOf("e", 1, 10)
			s.observe.given("e", 10)
		}, first, 1, false},
		"given before it was got": {func(s *sim) {
			s.observe.given("e", 10)
			s.observe.gotOf("e", 1, 10)
		}, first, 10, true},
		"too much":       {func(s *sim) { s.observe.gotOf("e", 1, 10); s.observe.given("e", 14) }, first, 4, true},
		"more than that": {func(s *sim) { s.observe.gotOf("e", 1, 10); s.observe.given("e", 14) }, first, 5, false},
		"of one deleted": {func(s *sim) {
			s.observe.gotOf("e", 1, 10)
			s.observe.began(second)
			s.observe.created["e"] = append(s.observe.created["e"], s.observe.sequence(second))
			s.observe.given("e", 10)
		}, second, 10, true},
		"under way as it was created anew": {func(s *sim) {
			s.requests = append(s.requests, &op{kind: release, entity: "e", tokens: 7})
			s.observe.began(second)
		}, second, 7, true},
		"of one below": {func(s *sim) {
			below := sequenceID{"f", 3}
			s.report.Trees = 1
			s.observe.began(below)
			s.observe.created["f"] = append(s.observe.created["f"], s.observe.sequence(below))
			s.observe.catalogue.states[0].parents["f"] = "e"
			s.observe.given("f", 3)
		}, first, 3, true},
		"of one that stood below at a cluster of one site": {func(s *sim) {
			s.nodes = s.nodes[:1]
			s.report.Trees = 1
			for id, parent := range map[sequenceID]string{{"f", 3}: "e", {"g", 4}: "f"} {
				s.observe.began(id)
				s.observe.created[id.entity] = append(s.observe.created[id.entity], s.observe.sequence(id))
				s.observe.stood(new(Memory), &stored.Records{Changes: []stored.Change{
					{Change: stored.CatalogueChange{Kind: input.MoveEntity, Name: id.entity, Parent: parent}},
				}})
			}
			s.observe.given("g", 3)
		}, first, 3, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSim(Options{Sites: 3, Protocol: "majority"})
			s.observe.began(first)
			s.observe.created["e"] = append(s.observe.created["e"], s.observe.sequence(first))
			tc.play(s)
			s.observe.asideWithin(s.observe.sequence(tc.id), tc.aside)
			if allowed := s.violation == nil; allowed != tc.wanted {
				t.Errorf("%d set aside: %v", tc.aside, s.violation)
			}
		})
	}
}
