package sim

import (
	"slices"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// fits returns answer.OK if an entity may stand below a parent, else why not; "" is no
// parent.
func (st *catalogueState) fits(name, parent string) answer.Code {
	if parent == "" {
		return answer.OK
	}
	if _, found := st.entities[parent]; !found {
		return answer.NoParent
	}
	above := st.chain(parent)
	if slices.Contains(above, name) {
		return answer.Looped
	}
	if len(above)+st.height(name) > core.MaxDepth {
		return answer.TooDeep
	}
	return answer.OK
}

// chain is an entity and all above it, from the bottom up; none for "".
func (st *catalogueState) chain(name string) []string {
	var list []string
	for ; name != ""; name = st.parents[name] {
		list = append(list, name)
	}
	return list
}

// height is how many levels an entity has with all below it.
func (st *catalogueState) height(name string) int {
	most := 0
	for child, parent := range st.parents {
		if parent == name {
			most = max(most, st.height(child))
		}
	}
	return most + 1
}

// below lists an entity and all below it, in no order.
func (st *catalogueState) below(name string) []string {
	list := []string{name}
	for child, parent := range st.parents {
		if parent == name {
			list = append(list, st.below(child)...)
		}
	}
	return list
}

func (st *catalogueState) put(name, parent string) {
	if parent == "" {
		delete(st.parents, name)
		return
	}
	st.parents[name] = parent
}

// shift notes that tokens out of an entity come to the entities above it, or leave them.
func (m *catalogueModel) shift(st *catalogueState, name string) {
	for _, above := range st.chain(st.parents[name]) {
		m.shifted = append(m.shifted, sequenceID{above, st.entities[above]})
	}
}

// settleMove applies a decided move.
func (m *catalogueModel) settleMove(next *catalogueState, ch *stored.CatalogueChange) answer.Code {
	if code := next.fits(ch.Name, ch.Parent); code != answer.OK {
		m.misplaced++
		return code
	}
	if next.parents[ch.Name] == ch.Parent {
		return answer.OK
	}
	if handsOver(&next.roster) {
		return answer.Changing
	}
	m.moves++
	m.shift(next, ch.Name)
	next.put(ch.Name, ch.Parent)
	m.shift(next, ch.Name)
	return answer.OK
}

// settleDelete applies a decided deletion.
func (m *catalogueModel) settleDelete(next *catalogueState, ch *stored.CatalogueChange) answer.Code {
	gone := next.below(ch.Name)
	if len(gone) > 1 {
		if !ch.Subtree {
			m.misplaced++
			return answer.HasChildren
		}
	}
	if next.parents[ch.Name] != "" && handsOver(&next.roster) {
		return answer.Changing
	}
	if len(gone) > 1 {
		m.prunes++
	}
	m.shift(next, ch.Name)
	for _, name := range gone {
		delete(next.entities, name)
		delete(next.parents, name)
	}
	return answer.OK
}

// above is the name of an entity's parent as stored, "" for none.
func (m *Memory) above(name string) string {
	parent := m.Entities[name].Parent
	if parent == 0 {
		return ""
	}
	return m.Names[parent]
}

// chain is an entity and all above it as stored, from the bottom up.
func (m *Memory) chain(name string) []string {
	var list []string
	for ; name != "" && len(list) < core.MaxDepth; name = m.above(name) {
		list = append(list, name)
	}
	return list
}

// sums are the entities as stored whose net counts the net of an entity: itself and, unless it
// is a rate quota, those above that are none.
func (m *Memory) sums(name string) []string {
	list := m.chain(name)
	isRate := func(name string) bool {
		t := m.Entities[name].Rate.Terms
		return !t.None()
	}
	if len(list) > 0 && isRate(name) {
		return list[:1]
	}
	return slices.DeleteFunc(list, isRate)
}

// planted reports whether an entity has a parent or children as stored.
func (m *Memory) planted(name string) bool {
	e := m.Entities[name]
	if e.Parent != 0 {
		return true
	}
	for _, other := range m.Entities {
		if other.Parent == e.Generation && e.Generation != 0 {
			return true
		}
	}
	return false
}

// charge is how many tokens of an entity a request needs.
type charge struct {
	name   string
	tokens core.Tokens
}

// charges are the tokens that an acquire needs of each stored entity: of the entities
// that it names and of all above them. An acquire that is content with less needs no more
// than the limits allow.
func (m *Memory) charges(p *op) []charge {
	list := m.raw(p)
	if p.kind == acquireAll || p.least == 0 {
		return list
	}
	most := p.tokens
	for _, c := range list {
		most = min(most, m.Entities[c.name].Limit)
	}
	for i := range list {
		list[i].tokens = max(most, p.least)
	}
	return list
}

// raw are the tokens that an acquire asks for of each entity, whatever the limits are.
func (m *Memory) raw(p *op) []charge {
	if p.kind != acquireAll {
		var list []charge
		for _, name := range m.chain(p.entity) {
			list = append(list, charge{name, p.tokens})
		}
		return list
	}
	var list []charge
	for _, part := range p.parts {
		for _, name := range m.chain(part.Entity) {
			if i := slices.IndexFunc(list, func(c charge) bool { return c.name == name }); i >= 0 {
				list[i].tokens += part.Tokens
			} else {
				list = append(list, charge{name, part.Tokens})
			}
		}
	}
	return list
}

// hasAll reports whether the tokens left at the site and its tokens set aside would do
// for an acquire.
func (n *node) hasAll(p *op) bool {
	return !slices.ContainsFunc(n.drained.charges(p), func(c charge) bool { return n.has(c.name) < c.tokens })
}

// replanting reports whether a transaction may change where entities stand.
func (o *observer) replanting(n *node, r *stored.Records) bool {
	if r.Catalogue == nil {
		return false
	}
	// The books of rate quotas are judged by themselves.
	stands := func(e stored.Entity) bool { return e.Parent != 0 && !rated(e.Name) }
	// An entity may also come to stand below another and leave again, or be deleted.
	moves := func(ch stored.Change) bool {
		return !rated(ch.Change.Name) && (ch.Change.Kind == input.MoveEntity || ch.Change.Parent != "")
	}
	if slices.ContainsFunc(r.Changes, moves) || slices.ContainsFunc(r.Entities, stands) {
		return true
	}
	for _, e := range n.durable.Entities {
		if stands(e) {
			return true
		}
	}
	return false
}

// replant takes in a transaction that changes where entities stand. A site has out of
// each entity its own tokens out and the tokens out of all entities below. given are the
// tokens out of each entity by itself before entities were deleted.
func (o *observer) replant(n *node, r *stored.Records, given map[string]core.Tokens) {
	before := n.durable
	after, err := before.standing(r)
	if err != nil {
		o.s.fail(Sound, "%s: %w", n.id, err)
		return
	}
	o.stood(after, r)
	own, net := o.own[n.i], make(map[string]core.Tokens)
	created := func(name string) bool { return before.Entities[name].Generation != after.Entities[name].Generation }
	var sum func(name string) core.Tokens
	sum = func(name string) core.Tokens {
		var below core.Tokens
		for other := range after.Entities {
			if after.above(other) == name {
				below += sum(other)
			}
		}
		if created(name) {
			// Which of the requests came before the deletion cannot be told.
			own[name] = after.Books[name].Net - below
		}
		net[name] = own[name] + below
		return net[name]
	}
	for name := range after.Entities {
		if after.above(name) == "" {
			sum(name)
		}
	}
	// Between its steps the tokens out of an entity are no more than the tokens that move
	// and the tokens out of all.
	most := o.mixes
	for _, tokens := range given {
		most += max(tokens, -tokens)
	}
	steps := 0
	for i := range r.Changes {
		if k := r.Changes[i].Change.Kind; k == input.MoveEntity || k == input.DeleteEntity {
			steps++
		}
	}
	for name, e := range after.Entities {
		if before.planted(name) || after.planted(name) {
			o.planted[name] = true
		}
		by := net[name]
		for _, other := range before.subtree(name) {
			by -= given[other]
		}
		if steps > 1 || created(name) {
			by = most
		}
		o.sequence(sequenceID{name, e.Generation}).moved += max(by, -by)
		l := o.readLog(n, name)
		l.nets = append(l.nets, span{-most, most}, span{net[name], net[name]})
	}
	o.net[n.i], n.replanted = net, o.s.now
}

// subtree lists an entity and all below it as stored, in no order.
func (m *Memory) subtree(name string) []string {
	list := []string{name}
	for other := range m.Entities {
		if m.above(other) == name {
			list = append(list, m.subtree(other)...)
		}
	}
	return list
}

// borrowed fails if requests have taken more of an entity than the site had left. The
// requests name the entity, or an entity below it. A debt grows only by a change of a
// limit, by a reconciliation, by a change of where entities stand, or by the protocols' sharing out. A
// transaction with any of these changes is left out.
func (o *observer) borrowed(n *node, r *stored.Records) {
	if r.Catalogue != nil || o.charged {
		return
	}
	for _, b := range r.Books {
		shared := slices.ContainsFunc(r.Entities, func(e stored.Entity) bool { return e.Name == b.Name })
		if before := n.durable.Books[b.Name]; !shared && b.Left < min(0, before.Left) {
			o.s.fail(Bounds, "%s has %d left of %q, had %d, and only requests moved tokens of it", n.id, b.Left, b.Name, before.Left)
		}
	}
}

// addsUp checks the tokens that a site durably has out of each entity: its requests have
// moved them, on the entity and on all below it.
func (o *observer) addsUp(n *node) {
	for name, b := range n.durable.Books {
		var below core.Tokens
		planted := false
		for other, e := range n.durable.Entities {
			if e.Parent != 0 && e.Parent == b.Generation {
				below += n.durable.Books[other].Net
				planted = true
			}
		}
		if planted && !rated(name) && b.Net != o.own[n.i][name]+below {
			o.s.fail(Durability, "%s has %d out of %q, by its own requests %d, of those below %d", n.id, b.Net, name, o.own[n.i][name], below)
		}
	}
}

// overGranted checks the tokens that clients hold of an entity in a tree, and of all
// below it. They stay within the limit, where all sites have the same tree.
func (o *observer) overGranted(name string) {
	inside := o.s.inside()
	first := inside[0].durable
	for _, n := range inside {
		if n.durable.generation() == 0 || n.durable.Catalogue.Protocol.Applied != first.Catalogue.Protocol.Applied {
			return
		}
	}
	for _, above := range first.chain(name) {
		e, found := first.Entities[above]
		if !found {
			return
		}
		var out core.Tokens
		for _, below := range first.subtree(above) {
			out += o.outstanding[below] - o.ghosts[below] - o.astray(first, below)
		}
		q := o.sequence(sequenceID{above, e.Generation})
		if most := q.limits[0].limit + q.raised + q.moved; out > most {
			o.s.fail(OverGrant, "%d tokens of %q and all below it are out, at most %d may be", out, above, most)
		}
	}
}
