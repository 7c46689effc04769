package membership

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	// maxNodes bounds the nodes remembered; any more are refused.
	maxNodes = 1024
	// forgetAfter is how long a dead node is remembered.
	forgetAfter = 10 * time.Minute
	// maxLost bounds the lost members called in a round of joining.
	maxLost = 16
)

// Errors of the delegates; they end in memberlist's log.
var (
	errForeign = errors.New("node of another cluster")
	errFull    = errors.New("too many nodes")
)

// table holds the known nodes. Memberlist reports them by callbacks, some under
// memberlist's own lock, so table never calls memberlist.
type table struct {
	mu      sync.Mutex
	self    Node
	nodes   map[string]*Member // by Node.ID
	changes chan struct{}
}

func newTable(self Node) *table {
	return &table{self: self, nodes: map[string]*Member{}, changes: make(chan struct{})}
}

func (t *table) changed() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changes
}

// notify wakes the waiters for a change; t.mu is held.
func (t *table) notify() {
	close(t.changes)
	t.changes = make(chan struct{})
}

func (t *table) setSelf(n Node) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n.ID() != t.self.ID() || n.Cluster != t.self.Cluster {
		return fmt.Errorf("%s of %s cannot become %s of %s", t.self.ID(), t.self.Cluster, n.ID(), n.Cluster)
	}
	t.self = n
	return nil
}

// adopted reports whether memberlist spreads the description given to setSelf.
func (t *table) adopted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.nodes[t.self.ID()]
	return m != nil && m.Node == t.self
}

// members returns copies of the remembered nodes, in order of role, name and instance.
func (t *table) members(now time.Time) []Member {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(now)
	ms := make([]Member, 0, len(t.nodes))
	for _, m := range t.nodes {
		c := *m
		if c.Self {
			c.LastSeen = now
		}
		ms = append(ms, c)
	}
	slices.SortFunc(ms, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Instance, b.Instance))
	})
	return ms
}

// latest returns the node that runs each site, from nodes in the order of members. It may
// change ms.
func latest(ms []Member) []Member {
	sites := ms[:0]
	for _, m := range ms {
		last := len(sites) - 1
		switch {
		case m.Role != RoleSite:
		case last < 0 || sites[last].Name != m.Name:
			sites = append(sites, m)
		case m.Term > sites[last].Term || m.Term == sites[last].Term && m.Health == Alive && sites[last].Health != Alive:
			sites[last] = m
		}
	}
	return sites
}

// forget drops nodes that died long ago; t.mu is held.
func (t *table) forget(now time.Time) {
	maps.DeleteFunc(t.nodes, func(_ string, m *Member) bool {
		return m.Health != Alive && now.Sub(m.LastSeen) > forgetAfter
	})
}

// alone reports whether no other node is alive.
func (t *table) alone() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range t.nodes {
		if !m.Self && m.Health == Alive {
			return false
		}
	}
	return true
}

// targets returns the addresses to join at: the seeds and the nodes thought
// dead, without this node itself.
func (t *table) targets(seeds []string, self string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	targets := slices.Clone(seeds)
	for _, id := range slices.Sorted(maps.Keys(t.nodes)) {
		if m := t.nodes[id]; m.Health == Dead && len(targets) < len(seeds)+maxLost {
			targets = append(targets, m.Gossip)
		}
	}
	return slices.DeleteFunc(targets, func(a string) bool { return a == self })
}

// put stores a node that memberlist reports.
func (t *table) put(n *memberlist.Node, h Health) {
	node, err := decode(n.Meta)
	if err != nil || node.ID() != n.Name {
		// NotifyAlive let no such node in.
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.nodes[n.Name] = &Member{
		Node:     node,
		Gossip:   net.JoinHostPort(n.Addr.String(), strconv.Itoa(int(n.Port))),
		Health:   h,
		LastSeen: time.Now(),
		Self:     n.Name == t.self.ID(),
	}
	t.notify()
}

// NotifyJoin implements memberlist.EventDelegate.
func (t *table) NotifyJoin(n *memberlist.Node) { t.put(n, Alive) }

// NotifyUpdate implements memberlist.EventDelegate.
func (t *table) NotifyUpdate(n *memberlist.Node) { t.put(n, Alive) }

// NotifyLeave implements memberlist.EventDelegate.
func (t *table) NotifyLeave(n *memberlist.Node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, ok := t.nodes[n.Name]
	if !ok {
		return
	}
	m.Health = Dead
	t.notify()
}

// NotifyAlive implements memberlist.AliveDelegate: it refuses nodes of other clusters,
// and nodes whose metadata has another name.
func (t *table) NotifyAlive(n *memberlist.Node) error {
	node, err := decode(n.Meta)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if node.Cluster != t.self.Cluster {
		return fmt.Errorf("%w: %s of %s", errForeign, node.ID(), node.Cluster)
	}
	if node.ID() != n.Name {
		return fmt.Errorf("node %.64q calls itself %s", n.Name, node.ID())
	}
	if _, known := t.nodes[n.Name]; !known && len(t.nodes) >= maxNodes {
		t.forget(time.Now())
		if len(t.nodes) >= maxNodes {
			return fmt.Errorf("%w: %d", errFull, len(t.nodes))
		}
	}
	return nil
}

// NotifyMerge implements memberlist.MergeDelegate: a foreign node among a peer's nodes
// refuses them all. A node that cannot be read may be of a later version; NotifyAlive
// keeps out only this node.
func (t *table) NotifyMerge(ns []*memberlist.Node) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range ns {
		if node, err := decode(n.Meta); err == nil && node.Cluster != t.self.Cluster {
			return fmt.Errorf("%w: %s of %s", errForeign, node.ID(), node.Cluster)
		}
	}
	return nil
}

// NodeMeta implements memberlist.Delegate. A node that Validate accepts fits the limit.
func (t *table) NodeMeta(int) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.self.encode()
}

// NotifyMsg implements memberlist.Delegate; samya gossips no messages.
func (t *table) NotifyMsg([]byte) {}

// GetBroadcasts implements memberlist.Delegate; samya gossips no messages.
func (t *table) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState implements memberlist.Delegate; samya syncs no state.
func (t *table) LocalState(bool) []byte { return nil }

// MergeRemoteState implements memberlist.Delegate; samya syncs no state.
func (t *table) MergeRemoteState([]byte, bool) {}

// AckPayload implements memberlist.PingDelegate.
func (t *table) AckPayload() []byte { return nil }

// NotifyPingComplete implements memberlist.PingDelegate: the node answered.
func (t *table) NotifyPingComplete(n *memberlist.Node, _ time.Duration, _ []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m, ok := t.nodes[n.Name]; ok {
		m.LastSeen = time.Now()
	}
}
