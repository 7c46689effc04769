package membership

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
	"pgregory.net/rapid"

	"github.com/samya-db/samya/internal/versions"
)

// nodeOf is a node of a site.
func nodeOf(name, instance string, term int64) Node {
	n := site(name)
	n.Instance, n.Term = instance, term
	return n
}

// TestMetaFits: the longest description fits into gossip, of a site of a single process as of a
// node. A description that is cut short is refused, unless it is that of an earlier build.
func TestMetaFits(t *testing.T) {
	long := strings.Repeat("x", 63)
	address := func(most int) string { return strings.Repeat("g", most-6) + ":65535" }
	single := Node{
		Name: long, Region: long, Role: RoleAppMgr, Cluster: long, Load: 255,
		GRPC: address(maxAddress), HTTP: address(maxAddress), Versions: versions.Range{Oldest: math.MaxUint32 - 1, Newest: math.MaxUint32},
	}
	node := single
	node.Role, node.Instance, node.Term, node.Standbys = RoleSite, long, math.MaxInt64, math.MaxUint8
	node.GRPC, node.HTTP = address(maxNodeAddress), address(maxNodeAddress)
	for what, n := range map[string]Node{"one process": single, "a node": node} {
		if err := n.Validate(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		b := n.encode()
		if len(b) > memberlist.MetaMaxSize {
			t.Errorf("%s: the longest takes %d bytes, at most %d", what, len(b), memberlist.MetaMaxSize)
		}
		if got, err := decode(append(b, "of a later version"...)); err != nil || got != n {
			t.Errorf("%s: decoded %+v, %v", what, got, err)
		}
		before := n
		before.Instance, before.Term, before.Standbys = "", 0, 0
		nodes := len(before.encode()) - 3 // builds of before nodes end here
		first := nodes - 10               // and builds of before versions here
		for i := range b {
			switch i {
			case first:
				before.Versions = versions.Of(versions.First)
			case nodes:
				before.Versions = n.Versions
			case len(b) - 1: // and builds of before standbys here
				before.Instance, before.Term = n.Instance, n.Term
			default:
				if got, err := decode(b[:i]); !errors.Is(err, errMeta) {
					t.Fatalf("%s: the first %d bytes: %+v, %v", what, i, got, err)
				}
				continue
			}
			if got, err := decode(b[:i]); err != nil || got != before {
				t.Errorf("%s: the first %d bytes: %+v, %v; want %+v", what, i, got, err, before)
			}
		}
	}
}

// TestMetaOfEarlierBuilds: descriptions as earlier builds wrote them are read, as sites of
// a single process. A node appends its instance and its term to the fields that such builds read.
func TestMetaOfEarlierBuilds(t *testing.T) {
	const (
		texts    = "0107" + "0473697465" + "026575" + "026575" + "0474657374" + "0e3132372e302e302e313a37303030" + "0e3132372e302e302e313a37303031"
		versions = "0102"
	)
	want := site("eu")
	want.Load = 7
	for what, told := range map[string]string{"before nodes": texts + versions, "before versions": texts} {
		b, err := hex.DecodeString(told)
		if err != nil {
			t.Fatal(err)
		}
		want.Versions.Oldest, want.Versions.Newest = 1, 2
		if what == "before versions" {
			want.Versions.Newest = 1
		}
		if got, err := decode(b); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", what, got, err, want)
		}
	}
	n := nodeOf("eu", "a", 300)
	n.Standbys = 2
	n.Load, n.Versions = 7, want.Versions
	n.Versions.Newest = 2
	if got := hex.EncodeToString(n.encode()); got != texts+versions+"0161"+"ac02"+"02" {
		t.Errorf("a node is written as %s", got)
	}
}

// TestTermsBeyondTheLast: a term that is no int64 is refused.
func TestTermsBeyondTheLast(t *testing.T) {
	b := nodeOf("eu", "a", 0).encode()
	b = append(b[:len(b)-2], 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01)
	if n, err := decode(b); !errors.Is(err, errMeta) {
		t.Errorf("%+v, %v", n, err)
	}
}

// TestNodesOfASite: both nodes of a site stay, and the site is the node of the highest term,
// dead or alive. Of equal terms the node that is alive counts.
func TestNodesOfASite(t *testing.T) {
	a, b, single := nodeOf("eu", "a", 7), nodeOf("eu", "b", 9), site("eu")
	equal := nodeOf("eu", "a", 9)
	for what, tc := range map[string]struct {
		alive, dead []Node
		want        Node
	}{
		"the later took over":                   {[]Node{b}, []Node{a}, b},
		"both are thought alive":                {[]Node{a, b}, nil, b},
		"the later died":                        {[]Node{a}, []Node{b}, b},
		"both died":                             {nil, []Node{a, b}, b},
		"it was of one process":                 {[]Node{a}, []Node{single}, a},
		"equal terms, the first alive":          {[]Node{equal}, []Node{b}, equal},
		"equal terms, the second alive":         {[]Node{b}, []Node{equal}, b},
		"another site has a higher term":        {[]Node{a, nodeOf("as", "a", 99), nodeOf("us", "b", 99)}, nil, a},
		"an app manager of the same name":       {[]Node{a, {Name: "eu", Region: "eu", Role: RoleAppMgr, Cluster: "test"}}, nil, a},
		"a site of a single process by its own": {[]Node{single}, nil, single},
	} {
		tab := newTable(site("us"))
		for i, n := range slices.Concat(tc.alive, tc.dead) {
			tab.NotifyJoin(told(n, byte(i)))
		}
		for i, n := range tc.dead {
			tab.NotifyLeave(told(n, byte(i)))
		}
		all := tab.members(time.Now())
		if len(all) != len(tc.alive)+len(tc.dead) {
			t.Errorf("%s: %d nodes are known", what, len(all))
		}
		sites := latest(all)
		i := slices.IndexFunc(sites, func(m Member) bool { return m.Name == "eu" })
		if i < 0 || sites[i].Node != tc.want {
			t.Errorf("%s: the sites are %+v", what, sites)
		}
	}
}

// TestSitesAreOneEach: whatever is told in whatever order, each site is there once, and no
// known node of it has a higher term, or is alive at the same term while the site is dead.
func TestSitesAreOneEach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab := newTable(site("us"))
		for range rapid.IntRange(0, 30).Draw(t, "events") {
			n := nodeOf(
				rapid.SampledFrom([]string{"as", "eu", "us"}).Draw(t, "site"), rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "instance"),
				rapid.Int64Range(0, 4).Draw(t, "term"))
			if rapid.Bool().Draw(t, "is the end") {
				tab.NotifyLeave(told(n, 1))
				continue
			}
			tab.NotifyJoin(told(n, 1))
		}
		all := tab.members(time.Now())
		names := map[string]bool{}
		for _, m := range all {
			names[m.Name] = true
		}
		before := slices.Clone(all)
		sites := latest(all)
		if len(sites) != len(names) || !slices.IsSortedFunc(sites, func(a, b Member) int { return strings.Compare(a.Name, b.Name) }) {
			t.Fatalf("sites %+v of nodes %+v", sites, before)
		}
		for _, s := range sites {
			for _, m := range before {
				if m.Name == s.Name && (m.Term > s.Term || m.Term == s.Term && m.Health == Alive && s.Health != Alive) {
					t.Fatalf("%+v counts, and not %+v", s, m)
				}
			}
		}
	})
}

// TestTakeOver: the node of a site is killed without a word, and another node takes over. A
// third process sees the new address, and goes on to see it once the first node counts as
// dead. The first node changes nothing when it comes back, until it has a higher term.
func TestTakeOver(t *testing.T) {
	at := func(instance string, term int64, port int) Node {
		n := nodeOf("eu", instance, term)
		n.GRPC = fmt.Sprintf("127.0.0.1:%d", port)
		return n
	}
	us := start(t, Config{Self: site("us")})
	a := start(t, Config{Self: at("a", 7, 7100), Join: []string{us.Addr()}})
	runs := func(want Node) func() bool {
		return func() bool { s := us.Sites(); return len(s) == 2 && s[0].Node == want && s[0].Health == Alive }
	}
	until(t, us, "the first node", runs(at("a", 7, 7100)))
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	// Nobody answers at the first seed, as at the address of a machine that is cut off.
	b := start(t, Config{Self: at("b", 9, 7200), Join: []string{"192.0.2.1:7946", us.Addr()}})
	until(t, us, "the second node", runs(at("b", 9, 7200)))
	sees(t, us, "site/eu/b site/us")
	if n := us.Nodes(); len(n) != 3 || n[0].Node != at("a", 7, 7100) || n[0].Health != Dead || !runs(at("b", 9, 7200))() {
		t.Errorf("the nodes are %+v", n)
	}
	back := start(t, Config{Self: at("a", 7, 7300), Join: []string{b.Addr()}})
	sees(t, us, "site/eu/a site/eu/b site/us")
	if s := us.Sites(); s[0].Node != at("b", 9, 7200) {
		t.Errorf("with the first node back the site is %+v", s[0])
	}
	if err := back.UpdateSelf(at("a", 12, 7300), 15*time.Second); err != nil {
		t.Fatal(err)
	}
	until(t, us, "the first node again", runs(at("a", 12, 7300)))
}
