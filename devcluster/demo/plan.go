package demo

import (
	"slices"
	"strings"

	"github.com/samya-db/samya/devcluster/load"
)

// The workloads.
const (
	// OneEntity is load on one entity.
	OneEntity = "entity"
	// Hierarchy is load on organisations that have teams that have leaves.
	Hierarchy = "hierarchy"
)

// Workloads are the names of the workloads.
func Workloads() []string { return []string{OneEntity, Hierarchy} }

// level is how far down an entity stands.
type level int

// The levels of the hierarchy. An entity that stands alone is an organisation.
const (
	org level = iota
	team
	leaf
	levels
)

// String names several of a level.
func (l level) String() string { return [levels]string{"orgs", "teams", "leaves"}[l] }

// node is an entity of the demo.
type node struct {
	name   string
	parent string // empty: none
	level  level
	limit  int64
}

// base is the last part of the name.
func (n *node) base() string { return n.name[strings.LastIndexByte(n.name, '/')+1:] }

// plan is what a demo creates and loads.
type plan struct {
	workload string
	nodes    []node // parents before what stands below them
	entities []load.Entity
	// curve is the limit by which the regions' holdings are drawn.
	curve int64
	// limit is the most that may be out of all, and total the account of the ledger
	// that counts all.
	limit int64
	total string
}

// everything is the account of the ledger that counts a whole hierarchy; no entity
// has such a name.
const everything = "*"

// plan returns what the options ask for.
func (o *Options) plan() plan {
	if o.Workload == Hierarchy {
		return tree(o.Limit)
	}
	return plan{
		workload: OneEntity, nodes: []node{{name: o.Entity, limit: o.Limit}}, entities: load.One(o.Entity),
		curve: o.Limit, limit: o.Limit, total: o.Entity,
	}
}

// The limits of a team and of a leaf, as shares of their organisation's: what
// stands below one has more together than the one itself.
const (
	teamShare = 0.6
	leafShare = 0.3
)

// demand is what clients want to hold of an organisation's leaves, as shares of its
// limit.
type demand struct {
	org   string
	teams []struct {
		name   string
		leaves []float64
	}
}

// leafNames name a team's leaves.
func leafNames() []string { return []string{"prod", "staging", "dev"} }

// demands has one organisation for each level that may be the tightest: of acme
// more is wanted than the organisation has, though no team wants too much; of globex
// than one team has, and of initech than one leaf.
func demands() []demand {
	type teams = []struct {
		name   string
		leaves []float64
	}
	return []demand{
		{"acme", teams{{"web", []float64{0.20, 0.19, 0.18}}, {"data", []float64{0.21, 0.19, 0.17}}}},
		{"globex", teams{{"web", []float64{0.26, 0.23, 0.20}}, {"data", []float64{0.11, 0.08, 0.06}}}},
		{"initech", teams{{"web", []float64{0.36, 0.09, 0.07}}, {"data", []float64{0.10, 0.06, 0.04}}}},
	}
}

// tree is the plan of organisations with the limit.
func tree(limit int64) plan {
	p := plan{workload: Hierarchy, total: everything}
	of := func(share float64) int64 { return max(1, int64(share*float64(limit))) }
	wanted := 0.0
	for _, o := range demands() {
		p.limit += limit
		p.nodes = append(p.nodes, node{name: o.org, limit: limit})
		for _, t := range o.teams {
			name := o.org + "/" + t.name
			p.nodes = append(p.nodes, node{name: name, parent: o.org, level: team, limit: of(teamShare)})
			for i, want := range t.leaves {
				n := node{name: name + "/" + leafNames()[i], parent: name, level: leaf, limit: of(leafShare)}
				p.nodes = append(p.nodes, n)
				p.entities = append(p.entities, load.Entity{Name: n.name, Above: []string{name, o.org, everything}, Share: want})
				wanted += want
			}
		}
	}
	p.curve = int64(wanted * float64(limit) / heldAtAnyTime(len(Regions())))
	return p
}

// count says how many nodes of a level there are.
func (p *plan) count(l level) int {
	n := 0
	for i := range p.nodes {
		if p.nodes[i].level == l {
			n++
		}
	}
	return n
}

// children yields the positions of the nodes right below one.
func (p *plan) children(name string) []int {
	var at []int
	for i := range p.nodes {
		if p.nodes[i].parent == name {
			at = append(at, i)
		}
	}
	return slices.Clip(at)
}
