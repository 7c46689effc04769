package demo

import (
	"slices"
	"strings"

	"github.com/samya-db/samya/devcluster/load"
)

// The workloads.
const (
	// OneEntity is load on a single entity.
	OneEntity = "entity"
	// Hierarchy is load on organisations with teams, which have leaves.
	Hierarchy = "hierarchy"
)

// Workloads are the names of the workloads.
func Workloads() []string { return []string{OneEntity, Hierarchy} }

// level is the depth of an entity in the hierarchy.
type level int

// The levels of the hierarchy. A single entity is an organisation.
const (
	org level = iota
	team
	leaf
	levels
)

// String names several entities of a level.
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

// plan lists the entities to create and to load.
type plan struct {
	workload string
	nodes    []node // parents before their children
	entities []load.Entity
	// curve is the limit that scales the regions' holdings.
	curve int64
	// limit is the most tokens of all entities that may be out; total is the ledger's
	// account of all tokens.
	limit int64
	total string
}

// everything is the ledger's account of a whole hierarchy; no entity has such a name.
const everything = "*"

// plan returns the plan for the options.
func (o *Options) plan() plan {
	if o.Workload == Hierarchy {
		return tree(o.Limit)
	}
	return plan{
		workload: OneEntity, nodes: []node{{name: o.Entity, limit: o.Limit}}, entities: load.One(o.Entity),
		curve: o.Limit, limit: o.Limit, total: o.Entity,
	}
}

// The limits of a team and of a leaf, as shares of their organisation's limit. The
// limits of an entity's children add up to more than its own limit.
const (
	teamShare = 0.6
	leafShare = 0.3
)

// demand is the clients' demand on an organisation's leaves, as shares of its limit.
type demand struct {
	org   string
	teams []struct {
		name   string
		leaves []float64
	}
}

// leafNames name a team's leaves.
func leafNames() []string { return []string{"prod", "staging", "dev"} }

// demands returns an organisation for each level that may be the tightest. The demand on
// acme exceeds the organisation's limit, though no team's. The demand on a team of
// globex exceeds the team's limit, and the demand on a leaf of initech exceeds the
// leaf's.
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

// tree returns the plan of the organisations, each with the limit.
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

// count returns the number of nodes of a level.
func (p *plan) count(l level) int {
	n := 0
	for i := range p.nodes {
		if p.nodes[i].level == l {
			n++
		}
	}
	return n
}

// children returns the positions of a node's children.
func (p *plan) children(name string) []int {
	var at []int
	for i := range p.nodes {
		if p.nodes[i].parent == name {
			at = append(at, i)
		}
	}
	return slices.Clip(at)
}
