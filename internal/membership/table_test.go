package membership

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
)

// told is memberlist's word of a node at 10.0.0.host.
func told(n Node, host byte) *memberlist.Node {
	return &memberlist.Node{Name: n.ID(), Meta: n.encode(), Addr: net.IPv4(10, 0, 0, host), Port: 7946}
}

// TestTargets: calls go to the seeds and to nodes thought dead, up to a bound and in
// order, and never to the node itself. The seeds stay as they are.
func TestTargets(t *testing.T) {
	tab := newTable(site("us"))
	tab.NotifyJoin(told(site("us"), 1))
	tab.NotifyJoin(told(site("alive"), 2))
	tab.NotifyJoin(told(site("dead"), 3))
	tab.NotifyLeave(told(site("dead"), 3))
	// There is room behind the seeds.
	seeds := append(make([]string, 0, 10), "10.0.0.1:7946", "seed.example:7946", "10.0.0.2:7946")
	want := []string{"seed.example:7946", "10.0.0.2:7946", "10.0.0.3:7946"}
	if got := tab.targets(seeds, "10.0.0.1:7946"); !slices.Equal(got, want) {
		t.Errorf("called are %v, want %v", got, want)
	}
	if !slices.Equal(seeds, []string{"10.0.0.1:7946", "seed.example:7946", "10.0.0.2:7946"}) {
		t.Errorf("the seeds are %v now", seeds)
	}
	for i := range byte(20) {
		n := site(fmt.Sprintf("lost%d", 10+i))
		tab.NotifyJoin(told(n, 100+i))
		tab.NotifyLeave(told(n, 100+i))
	}
	got := tab.targets(seeds[1:2], "10.0.0.1:7946")
	if len(got) != 1+maxLost || got[1] != "10.0.0.3:7946" || got[2] != "10.0.0.100:7946" || got[maxLost] != "10.0.0.114:7946" {
		t.Errorf("%d are called: %v", len(got), got)
	}
}

// TestAlone: a node is alone while no other node is alive.
func TestAlone(t *testing.T) {
	tab := newTable(site("us"))
	alone := func(when string, want bool) {
		t.Helper()
		if got := tab.alone(); got != want {
			t.Errorf("%s: alone is %v", when, got)
		}
	}
	alone("nobody is known", true)
	tab.NotifyJoin(told(site("us"), 1))
	alone("it knows itself", true)
	tab.NotifyJoin(told(site("eu"), 2))
	alone("another lives", false)
	tab.NotifyLeave(told(site("eu"), 2))
	alone("the other died", true)
}

// TestHowLongTheDeadAreRemembered: a dead node stays for ten minutes. A forgotten node
// makes room in a full table.
func TestHowLongTheDeadAreRemembered(t *testing.T) {
	tab := newTable(site("us"))
	for i := range maxNodes {
		tab.NotifyJoin(told(site(fmt.Sprintf("n%d", i)), byte(i)))
	}
	dead := site("n7")
	tab.NotifyLeave(told(dead, 7))
	died := tab.nodes[dead.ID()].LastSeen
	if n := len(tab.members(died.Add(10 * time.Minute))); n != maxNodes {
		t.Fatalf("%d nodes after ten minutes, want %d", n, maxNodes)
	}
	if err := tab.NotifyAlive(told(site("late"), 1)); !errors.Is(err, errFull) {
		t.Errorf("a node in a full table: %v", err)
	}
	tab.nodes[dead.ID()].LastSeen = time.Now().Add(-10*time.Minute - time.Second)
	if err := tab.NotifyAlive(told(site("late"), 1)); err != nil {
		t.Errorf("a node in a table with one that died long ago: %v", err)
	}
	if n := len(tab.members(time.Now())); n != maxNodes-1 {
		t.Errorf("%d nodes, want %d", n, maxNodes-1)
	}
}

// TestLastSeen: an answered probe is word of a node, and a node has word of itself at
// any time. A list handed out does not change.
func TestLastSeen(t *testing.T) {
	tab := newTable(site("us"))
	tab.NotifyJoin(told(site("us"), 1))
	tab.NotifyJoin(told(site("eu"), 2))
	long := time.Now().Add(-time.Hour)
	for _, m := range tab.nodes {
		m.LastSeen = long
	}
	now := time.Now()
	before := tab.members(now)
	if !before[0].LastSeen.Equal(long) || !before[1].LastSeen.Equal(now) {
		t.Errorf("last seen: eu %v, itself %v, now is %v", before[0].LastSeen, before[1].LastSeen, now)
	}
	tab.NotifyPingComplete(told(site("eu"), 2), time.Millisecond, nil)
	tab.NotifyPingComplete(told(site("nobody"), 3), time.Millisecond, nil)
	after := tab.members(now)
	if len(after) != 2 || after[0].LastSeen.Before(now) {
		t.Errorf("after a probe: %+v", after)
	}
	if !before[0].LastSeen.Equal(long) {
		t.Errorf("eu was last seen at %v, told before as %v", before[0].LastSeen, long)
	}
}

// TestNobodyTakesANameOver: memberlist's word about a node counts under the name alone
// that the node gives itself.
func TestNobodyTakesANameOver(t *testing.T) {
	tab := newTable(site("us"))
	tab.NotifyJoin(told(site("eu"), 2))
	liar := told(site("as"), 3)
	liar.Name = "site/eu"
	tab.NotifyUpdate(liar)
	tab.NotifyUpdate(&memberlist.Node{Name: "site/eu", Meta: []byte("x")})
	if m := tab.members(time.Now()); len(m) != 1 || m[0].Node != site("eu") || m[0].Gossip != "10.0.0.2:7946" {
		t.Errorf("known are %+v", m)
	}
}

// TestSelfStaysItself: a node cannot change its name, instance, role or cluster, and goes on
// as it was when that is refused.
func TestSelfStaysItself(t *testing.T) {
	tab := newTable(site("us"))
	for what, change := range map[string]func(*Node){
		"name":     func(n *Node) { n.Name = "eu" },
		"instance": func(n *Node) { n.Instance = "a" },
		"role":     func(n *Node) { n.Role = RoleAppMgr },
		"cluster":  func(n *Node) { n.Cluster = "other" },
	} {
		n := site("us")
		change(&n)
		if err := tab.setSelf(n); err == nil {
			t.Errorf("another %s is taken", what)
		}
		if got, err := decode(tab.NodeMeta(memberlist.MetaMaxSize)); err != nil || got != site("us") {
			t.Errorf("after another %s is refused it is %+v, %v", what, got, err)
		}
	}
	n := site("us")
	n.Region, n.Load, n.HTTP, n.Term = "elsewhere", 9, "", 7
	if err := tab.setSelf(n); err != nil {
		t.Errorf("another region: %v", err)
	}
	if got, err := decode(tab.NodeMeta(memberlist.MetaMaxSize)); err != nil || got != n {
		t.Errorf("it is %+v, want %+v, %v", got, n, err)
	}
}

// TestWhatIsNotDecoded: descriptions of another version, or with forbidden contents, are
// not decoded.
func TestWhatIsNotDecoded(t *testing.T) {
	later := site("us").encode()
	later[0] = metaVersion + 1
	king := site("us")
	king.Role = "king"
	nowhere, beyond := site("us"), site("us")
	nowhere.GRPC, beyond.HTTP = ":7000", "127.0.0.1:65536"
	for what, b := range map[string][]byte{
		"a later version": later, "an unknown role": king.encode(),
		"an address without a host": nowhere.encode(), "a port beyond the last": beyond.encode(),
	} {
		if n, err := decode(b); !errors.Is(err, errMeta) || n != (Node{}) {
			t.Errorf("%s: %+v, %v", what, n, err)
		}
	}
}

// TestHealthIsTold: each health has its name.
func TestHealthIsTold(t *testing.T) {
	if got := fmt.Sprint(Alive, Dead, Health(0)); got != "alive dead unknown" {
		t.Error(got)
	}
}
