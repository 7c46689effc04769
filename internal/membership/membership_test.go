package membership

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
	"go.uber.org/goleak"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/preset"
	"github.com/samya-db/samya/internal/testfuzz"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quick makes gossip fast enough for tests.
func quick(c *memberlist.Config) {
	c.ProbeInterval = 50 * time.Millisecond
	c.ProbeTimeout = 25 * time.Millisecond
	c.GossipInterval = 10 * time.Millisecond
	c.SuspicionMult = 1
	c.GossipToTheDeadTime = time.Millisecond
	c.TCPTimeout = 500 * time.Millisecond
}

func site(n string) Node {
	return Node{Name: n, Region: n, Role: RoleSite, Cluster: "test", GRPC: "127.0.0.1:7000", HTTP: "127.0.0.1:7001"}
}

func start(t *testing.T, c Config) *Membership {
	t.Helper()
	c.Preset, c.tune = preset.Local, quick
	if c.Bind == "" {
		c.Bind = "127.0.0.1:0"
	}
	m, err := Start(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// freeAddr returns an address that nobody listens on just now.
func freeAddr(t *testing.T) string {
	t.Helper()
	addrs, err := proc.FreePorts(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return addrs[0]
}

// until waits for cond, which is tried at every change m sees.
func until(t *testing.T, m *Membership, what string, cond func() bool) {
	t.Helper()
	deadline := time.NewTimer(15 * time.Second)
	defer deadline.Stop()
	for {
		changed := m.Changed()
		if cond() {
			return
		}
		select {
		case <-changed:
		case <-deadline.C:
			t.Fatalf("%s never happened; nodes: %+v", what, m.Nodes())
		}
	}
}

// alive returns the IDs of the nodes that m thinks alive.
func alive(m *Membership) string {
	var ids []string
	for _, n := range m.Nodes() {
		if n.Health == Alive {
			ids = append(ids, n.ID())
		}
	}
	return strings.Join(ids, " ")
}

func sees(t *testing.T, m *Membership, want string) {
	t.Helper()
	until(t, m, "alive: "+want, func() bool { return alive(m) == want })
}

// keyFile makes a file of keys.
func keyFile(t *testing.T, keys ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	writeKeys(t, path, keys...)
	return path
}

func writeKeys(t *testing.T, path string, keys ...string) {
	t.Helper()
	text := "# keys of gossip\n"
	for _, k := range keys {
		text += base64.StdEncoding.EncodeToString([]byte(k)) + "\n"
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestExchangeOfKeys: running nodes exchange their key in three steps. No step separates
// any two of them. Afterwards a node with the old key alone is kept out.
func TestExchangeOfKeys(t *testing.T) {
	const before, after = "0123456789abcdef", "fedcba9876543210"
	files := []string{keyFile(t, before), keyFile(t, before)}
	us := start(t, Config{Self: site("us"), KeyFile: files[0]})
	eu := start(t, Config{Self: site("eu"), KeyFile: files[1], Join: []string{us.Addr()}})
	sees(t, us, "site/eu site/us")
	load := uint8(0)
	for _, step := range [][]string{{before, after}, {after, before}, {after}} {
		for i, m := range []*Membership{us, eu} {
			writeKeys(t, files[i], step...)
			m.lookAtKeys()
			// A node has the new keys and the other node the old keys: each hears the
			// other.
			for from, to := range map[*Membership]*Membership{us: eu, eu: us} {
				load++
				n := from.table.self
				n.Load = load
				if err := from.UpdateSelf(n, 15*time.Second); err != nil {
					t.Fatal(err)
				}
				until(t, to, "news of "+n.Name, func() bool {
					return slices.ContainsFunc(to.Nodes(), func(m Member) bool { return m.Name == n.Name && m.Load == load && m.Health == Alive })
				})
			}
		}
	}
	if keys := us.keyring.GetKeys(); len(keys) != 1 || string(keys[0]) != after {
		t.Errorf("the keys are %q", keys)
	}
	// A file out of order changes nothing.
	if err := os.WriteFile(files[0], []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	us.lookAtKeys()
	if keys := us.keyring.GetKeys(); len(keys) != 1 || string(keys[0]) != after {
		t.Errorf("the keys are %q", keys)
	}
	late := start(t, Config{Self: site("late"), KeyFile: keyFile(t, before), Join: []string{us.Addr()}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := late.list.Join([]string{us.Addr()}); err == nil {
		t.Error("the old key is accepted")
	}
	<-ctx.Done()
	if got := alive(us); got != "site/eu site/us" {
		t.Errorf("alive: %s", got)
	}
}

// TestKeyFiles: the contents that a file of keys may have.
func TestKeyFiles(t *testing.T) {
	key := base64.StdEncoding.EncodeToString(make([]byte, 32))
	for text, want := range map[string]int{
		key: 1, "# x\n\n" + key + "\r\n": 1, key + "\n" + key: 1, "": 0, "x": 0, "# x": 0,
		base64.StdEncoding.EncodeToString(make([]byte, 17)): 0, strings.Repeat("\n", maxKeyFile+1) + key: 0,
		"0123456789abcdef\n": 0, key + "\nAAAAAAAAAAAAAAAAAAAAAA==": 2,
	} {
		path := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		keys, err := ReadKeys(path)
		if len(keys) != want || (err == nil) != (want > 0) {
			t.Errorf("%.40q: %d keys, %v", text, len(keys), err)
		}
	}
	if _, err := ReadKeys(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestNodesFindEachOther(t *testing.T) {
	key := keyFile(t, "0123456789abcdef")
	us := start(t, Config{Self: site("us"), KeyFile: key})
	eu := start(t, Config{Self: site("eu"), KeyFile: key, Join: []string{us.Addr()}})
	// An app manager may bear the name of a site.
	mgr := Node{Name: "us", Region: "us", Role: RoleAppMgr, Cluster: "test"}
	am := start(t, Config{Self: mgr, KeyFile: key, Join: []string{us.Addr()}})
	for _, m := range []*Membership{us, eu, am} {
		sees(t, m, "appmgr/us site/eu site/us")
	}
	sites := am.Sites()
	if len(sites) != 2 || sites[0].Node != site("eu") || sites[1].Node != site("us") {
		t.Fatalf("sites %+v", sites)
	}
	if sites[1].Gossip != us.Addr() || sites[1].Self || time.Since(sites[1].LastSeen) > time.Minute {
		t.Errorf("us as the app manager sees it: %+v, listens at %s", sites[1], us.Addr())
	}
	if n := am.Nodes()[0]; !n.Self || n.Node != mgr {
		t.Errorf("itself: %+v", n)
	}
}

func TestUpdateSelf(t *testing.T) {
	us := start(t, Config{Self: site("us")})
	eu := start(t, Config{Self: site("eu"), Join: []string{us.Addr()}})
	sees(t, us, "site/eu site/us")
	n := site("eu")
	n.GRPC, n.Load = "127.0.0.1:9999", 200
	if err := eu.UpdateSelf(n, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	until(t, us, "the new address", func() bool { return us.Sites()[0].Node == n })

	n.Name = "as"
	if err := eu.UpdateSelf(n, time.Second); err == nil {
		t.Error("a site changed its name")
	}
	n.Name, n.GRPC = "eu", "nonsense"
	if err := eu.UpdateSelf(n, time.Second); err == nil {
		t.Error("a bad address was taken")
	}
}

func TestSeedStartsLater(t *testing.T) {
	addr := freeAddr(t)
	eu := start(t, Config{Self: site("eu"), Join: []string{addr}})
	if got := alive(eu); got != "site/eu" {
		t.Fatalf("alive: %s", got)
	}
	// The seed's only seed is itself.
	us := start(t, Config{Self: site("us"), Bind: addr, Join: []string{addr}})
	sees(t, us, "site/eu site/us")
	sees(t, eu, "site/eu site/us")
}

func TestDeathAndReturnElsewhere(t *testing.T) {
	us := start(t, Config{Self: site("us")})
	eu := start(t, Config{Self: site("eu"), Join: []string{us.Addr()}})
	sees(t, us, "site/eu site/us")
	if err := eu.Close(); err != nil {
		t.Fatal(err)
	}
	sees(t, us, "site/us")
	if s := us.Sites(); len(s) != 2 || s[0].Health != Dead || s[0].Health.String() != "dead" {
		t.Fatalf("the dead site is gone or alive: %+v", s)
	}
	again := start(t, Config{Self: site("eu"), Join: []string{us.Addr()}})
	sees(t, us, "site/eu site/us")
	if got := us.Sites()[0].Gossip; got != again.Addr() || got == eu.Addr() {
		t.Errorf("eu at %s, was at %s, is at %s", got, eu.Addr(), again.Addr())
	}
}

// TestSeedlessSideRejoins: a node without seeds finds back to a node that died, as when a
// partition between them heals.
func TestSeedlessSideRejoins(t *testing.T) {
	us := start(t, Config{Self: site("us")})
	eu := start(t, Config{Self: site("eu"), Join: []string{us.Addr()}})
	sees(t, us, "site/eu site/us")
	addr := eu.Addr()
	if err := eu.Close(); err != nil {
		t.Fatal(err)
	}
	sees(t, us, "site/us")
	back := start(t, Config{Self: site("eu"), Bind: addr})
	sees(t, us, "site/eu site/us")
	sees(t, back, "site/eu site/us")
}

func TestLeave(t *testing.T) {
	us := start(t, Config{Self: site("us")})
	eu := start(t, Config{Self: site("eu"), Join: []string{us.Addr()}})
	sees(t, us, "site/eu site/us")
	if err := eu.Leave(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	sees(t, us, "site/us")
	if err := eu.Close(); err != nil {
		t.Fatal(err)
	}
	if err := eu.Leave(time.Second); !errors.Is(err, errClosed) {
		t.Errorf("Leave after Close: %v", err)
	}
	if err := eu.UpdateSelf(site("eu"), time.Second); !errors.Is(err, errClosed) {
		t.Errorf("UpdateSelf after Close: %v", err)
	}
}

// TestStrangersStayOut joins a cluster with the wrong cluster name and with the
// wrong key; a third, right node shows when the others would have been seen.
func TestStrangersStayOut(t *testing.T) {
	us := start(t, Config{Self: site("us"), KeyFile: keyFile(t, "0123456789abcdef")})
	foreign := site("foreign")
	foreign.Cluster = "other"
	f := start(t, Config{Self: foreign, KeyFile: keyFile(t, "0123456789abcdef"), Join: []string{us.Addr()}})
	k := start(t, Config{Self: site("wrongkey"), KeyFile: keyFile(t, "fedcba9876543210"), Join: []string{us.Addr()}})
	for _, m := range []*Membership{f, k} {
		if n, err := m.list.Join([]string{us.Addr()}); n != 0 || err == nil {
			t.Errorf("%s joined", m.Nodes()[0].ID())
		}
	}
	eu := start(t, Config{Self: site("eu"), KeyFile: keyFile(t, "0123456789abcdef"), Join: []string{us.Addr()}})
	sees(t, us, "site/eu site/us")
	sees(t, eu, "site/eu site/us")
	if len(f.Nodes()) != 1 || len(k.Nodes()) != 1 {
		t.Errorf("strangers see %+v and %+v", f.Nodes(), k.Nodes())
	}
}

func TestDelegatesRefuse(t *testing.T) {
	tab := newTable(site("us"))
	node := func(id string, n Node) *memberlist.Node { return &memberlist.Node{Name: id, Meta: n.encode()} }
	foreign := site("eu")
	foreign.Cluster = "other"
	if err := tab.NotifyAlive(node("site/eu", foreign)); !errors.Is(err, errForeign) {
		t.Errorf("a foreign node: %v", err)
	}
	if err := tab.NotifyMerge([]*memberlist.Node{node("site/as", site("as")), node("site/eu", foreign)}); !errors.Is(err, errForeign) {
		t.Errorf("a merge with a foreign node: %v", err)
	}
	if err := tab.NotifyMerge([]*memberlist.Node{node("site/as", site("as")), {Name: "new", Meta: []byte{9, 9}}}); err != nil {
		t.Errorf("a merge with a later version's node: %v", err)
	}
	if err := tab.NotifyAlive(node("site/as", site("eu"))); err == nil {
		t.Error("a node under another's name was taken")
	}
	if err := tab.NotifyAlive(&memberlist.Node{Name: "site/eu", Meta: []byte("x")}); !errors.Is(err, errMeta) {
		t.Errorf("a node without metadata: %v", err)
	}
	for i := range maxNodes {
		n := node(fmt.Sprintf("site/n%d", i), site(fmt.Sprintf("n%d", i)))
		if err := tab.NotifyAlive(n); err != nil {
			t.Fatal(err)
		}
		tab.NotifyJoin(n)
	}
	if err := tab.NotifyAlive(node("site/eu", site("eu"))); !errors.Is(err, errFull) {
		t.Errorf("node number %d: %v", maxNodes+1, err)
	}
	if err := tab.NotifyAlive(node("site/n7", site("n7"))); err != nil {
		t.Errorf("a known node in a full table: %v", err)
	}
	tab.NotifyLeave(node("site/n7", site("n7")))
	if n := len(tab.members(time.Now().Add(time.Hour))); n != maxNodes-1 {
		t.Errorf("%d nodes after one died an hour ago", n)
	}
}

func TestEndOfContextCloses(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	// Nobody answers there: a join is under way when the context ends.
	m, err := Start(ctx, Config{Self: site("us"), Bind: "127.0.0.1:0", Preset: preset.Local, Join: []string{"192.0.2.1:7946"}})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestValidate(t *testing.T) {
	good := func() Config {
		return Config{Self: site("us"), Bind: "127.0.0.1:0", Join: []string{"seed.example:7946"}, Preset: preset.WAN}
	}
	if err := good().Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		field string
		spoil func(*Config)
	}{
		{"name", func(c *Config) { c.Self.Name = "US" }},
		{"region", func(c *Config) { c.Self.Region = "" }},
		{"cluster", func(c *Config) { c.Self.Cluster = strings.Repeat("c", 64) }},
		{"role", func(c *Config) { c.Self.Role = "king" }},
		{"grpc", func(c *Config) { c.Self.GRPC = "127.0.0.1" }},
		{"http", func(c *Config) { c.Self.HTTP = "127.0.0.1:0" }},
		{"http", func(c *Config) { c.Self.HTTP = strings.Repeat("h", 130) + ":80" }},
		{"http", func(c *Config) { c.Self.Instance, c.Self.HTTP = "a", strings.Repeat("h", maxNodeAddress-2)+":80" }},
		{"instance", func(c *Config) { c.Self.Instance = "A" }},
		{"instance", func(c *Config) { c.Self.Instance, c.Self.Role = "a", RoleAppMgr }},
		{"term", func(c *Config) { c.Self.Term = -1 }},
		{"bind", func(c *Config) { c.Bind = "localhost:0" }},
		{"bind", func(c *Config) { c.Bind = "" }},
		{"bind", func(c *Config) { c.Bind = "127.0.0.1:99999" }},
		{"advertise", func(c *Config) { c.Advertise = "0.0.0.0:7946" }},
		{"advertise", func(c *Config) { c.Advertise = "10.0.0.1:0" }},
		{"advertise", func(c *Config) { c.Advertise = "x" }},
		{"join[1]", func(c *Config) { c.Join = append(c.Join, "nowhere") }},
		{"join[0]", func(c *Config) { c.Join = []string{""} }},
		{"join", func(c *Config) { c.Join = slices.Repeat(c.Join, 65) }},
		{"preset", func(c *Config) { c.Preset = "moon" }},
	} {
		cfg := good()
		c.spoil(&cfg)
		_, err := Start(context.Background(), cfg)
		if e, ok := errors.AsType[*name.Error](err); !ok || e.Field != c.field {
			t.Errorf("bad %s: %v", c.field, err)
		}
	}
}

func TestAddressInUse(t *testing.T) {
	us := start(t, Config{Self: site("us")})
	if _, err := Start(context.Background(), Config{Self: site("eu"), Bind: us.Addr()}); err == nil || !strings.Contains(err.Error(), us.Addr()) {
		t.Errorf("got %v", err)
	}
}

func FuzzDecode(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add(site("us").encode())
	f.Add(nodeOf("us", "a", 1<<62).encode())
	f.Add([]byte{metaVersion, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := decode(b)
		if err != nil {
			return
		}
		if err := n.Validate(); err != nil {
			t.Fatalf("decoded a bad node: %v", err)
		}
		meta := n.encode()
		if again, err := decode(meta); err != nil || again != n {
			t.Fatalf("%+v became %+v, %v", n, again, err)
		}
		if len(meta) > memberlist.MetaMaxSize {
			t.Fatalf("%+v takes %d bytes, at most %d", n, len(meta), memberlist.MetaMaxSize)
		}
	})
}
