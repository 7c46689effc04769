// Package peer carries protocol messages between the sites of a cluster, over a gRPC
// stream for each direction of each pair. It does not promise delivery: a message is
// lost when its stream breaks or its queue is full, as the protocol allows. It refuses
// peers of another cluster, of no known version, or with another member set.
package peer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/samya-db/samya/internal/tlsconf"
	"github.com/samya-db/samya/internal/versions"
	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/wire"
)

// Config is the configuration of Links.
type Config struct {
	// Cluster and Self name the speaker.
	Cluster string
	Self    core.SiteID
	// Members are the sites to link to, this site among them, until SetPeers names others.
	// MembersVersion is the version of the durable member set: of two sites with the
	// same, above 0, both must have the same set. At version 0 this site joins, and takes
	// links from any site of the cluster.
	Members        []core.SiteID
	MembersVersion uint64
	// Term is the number of the take-over by which this node runs the site; 0 for a site of
	// one process. Of two nodes of a member, Links talk to the node of the higher term.
	Term int64
	// Address returns where a member's gRPC listener is thought to be, or "" if that is
	// not known yet. Links call it for every attempt and in Readdress.
	Address func(core.SiteID) string
	// TLS encrypts links, and both ends prove by their certificates which sites they
	// are. Nil: links in clear, without proof.
	TLS *tlsconf.Store
	// Latency delays every message to a member; nil for no delay.
	Latency func(to core.SiteID) time.Duration
	// Fault drops messages to a member while it returns true: the hook of tests that
	// cut sites off. Nil never drops.
	Fault func(to core.SiteID) bool
	// Versions returns the versions that this site tells. Speaks is told the versions that a
	// member told, before Receive gets any message that the member sent after it.
	// An error of Speaks ends the link. Nil Versions: this build's, of a cluster
	// not begun. Nil Speaks tells nobody.
	Versions func() versions.Speaker
	Speaks   func(from core.SiteID, s versions.Speaker) error
	// Receive takes a batch of messages from a member. It must not block.
	Receive func(from core.SiteID, messages []message.Envelope)
	// Connected is told whenever the set of members that this site has a link to
	// changes. Nil tells nobody.
	Connected func([]core.SiteID)
	// CopyBase answers another node of this site. Nil: there are no others.
	CopyBase func(*peerv1.CopyBaseRequest) (*peerv1.CopyBaseResponse, error)
	Logger   *slog.Logger

	// MaxQueued and MaxQueuedBytes bound the messages that wait for a link. Links drop
	// further messages, except a message that finds the queue empty. Defaults 16,384
	// and 64 MiB.
	MaxQueued, MaxQueuedBytes int
	// MaxBatch and MaxBatchBytes bound the messages of a batch; a single message may be
	// larger. Defaults 1,024 and 8 MiB.
	MaxBatch, MaxBatchBytes int
	// Stale is the greatest age of a message that waited for a link to come up. Links
	// drop an older message, as the protocols have sent a later message or will.
	// Default 5 s.
	Stale time.Duration
}

func (c *Config) setDefaults() {
	c.MaxQueued = cmp.Or(c.MaxQueued, 16384)
	c.MaxQueuedBytes = cmp.Or(c.MaxQueuedBytes, 64<<20)
	c.MaxBatch = cmp.Or(c.MaxBatch, 1024)
	c.MaxBatchBytes = cmp.Or(c.MaxBatchBytes, 8<<20)
	c.Stale = cmp.Or(c.Stale, 5*time.Second)
	if c.Versions == nil {
		own := versions.Own()
		c.Versions = func() versions.Speaker { return versions.Speaker{Range: own, Cluster: own.Newest} }
	}
	if c.Speaks == nil {
		c.Speaks = func(core.SiteID, versions.Speaker) error { return nil }
	}
}

// Bounds of a link.
const (
	// maxFrame is the size beyond which an encoded batch is sent in parts.
	maxFrame = 1 << 20
	// maxWhole bounds an encoded batch that arrives in parts.
	maxWhole = 256 << 20
	// maxDelayed bounds the frames that an injected latency holds back.
	maxDelayed = 4096
	// greetingTimeout bounds how long a greeting may take.
	greetingTimeout = 5 * time.Second
	// minPause and maxPause bound the pause between two attempts to connect.
	minPause, maxPause = 50 * time.Millisecond, 2 * time.Second
)

// Links are a site's links to all other members.
type Links struct {
	peerv1.UnimplementedPeerServiceServer

	cfg  Config
	hash []byte
	// links are the links by site. Only SetPeers and Run replace the map, under mu.
	links atomic.Pointer[map[core.SiteID]*link]
	// closing ends the streams of other members.
	closing chan struct{}
	// closes are the connections that are being closed.
	closes sync.WaitGroup

	mu        sync.Mutex
	connected []core.SiteID
	// start runs a link; nil while Run does not run.
	start func(*link)
	// refusals has the members with which this site does not work together.
	refusals map[core.SiteID]refusal
}

// New makes the links; Run brings them up.
func New(cfg Config) *Links {
	cfg.setDefaults()
	var set []byte
	for _, m := range cfg.Members {
		set = fmt.Appendf(set, "%d:%s", len(m), m)
	}
	hash := sha256.Sum256(set)
	l := &Links{cfg: cfg, hash: hash[:], closing: make(chan struct{}), refusals: make(map[core.SiteID]refusal)}
	l.links.Store(&map[core.SiteID]*link{})
	l.SetPeers(cfg.Members)
	return l
}

// SetPeers brings up links to sites that have none yet. Links to others stay.
func (l *Links) SetPeers(sites []core.SiteID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	links := maps.Clone(*l.links.Load())
	for _, m := range sites {
		if links[m] != nil || m == l.cfg.Self {
			continue
		}
		k := &link{owner: l, to: m, heard: make(chan struct{}, 1), signal: make(chan struct{}, 1), over: make(chan struct{})}
		links[m] = k
		if l.start != nil {
			l.start(k)
		}
	}
	l.links.Store(&links)
}

// link returns the link to a site, nil for none.
func (l *Links) link(to core.SiteID) *link { return (*l.links.Load())[to] }

// Run keeps the links up until ctx ends; then it also ends the streams of other
// members.
func (l *Links) Run(ctx context.Context) {
	var all sync.WaitGroup
	l.mu.Lock()
	l.start = func(k *link) { all.Go(func() { k.run(ctx) }) }
	for _, k := range *l.links.Load() {
		l.start(k)
	}
	l.mu.Unlock()
	<-ctx.Done()
	l.mu.Lock()
	l.start = nil
	l.mu.Unlock()
	all.Wait()
	close(l.closing)
	l.closes.Wait()
}

// Send queues messages on the links to their receivers. It never blocks.
func (l *Links) Send(messages []message.Envelope) {
	for i := range messages {
		if k := l.link(messages[i].To()); k != nil {
			k.push(wire.Encode(&messages[i]))
		}
	}
}

// Connected returns the members that this site has a link to, sorted.
func (l *Links) Connected() []core.SiteID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.connected)
}

// RoundTrips returns the round trip to each member that this site has a link to, as measured
// when the link came up, injected latencies included.
func (l *Links) RoundTrips() map[core.SiteID]time.Duration {
	up := l.Connected()
	trips := make(map[core.SiteID]time.Duration, len(up))
	for _, to := range up {
		k := l.link(to)
		if k == nil {
			continue
		}
		trip := time.Duration(k.trip.Load())
		if l.cfg.Latency != nil {
			trip += 2 * l.cfg.Latency(to)
		}
		trips[to] = trip
	}
	return trips
}

func (l *Links) setConnected(to core.SiteID, up bool) {
	l.mu.Lock()
	i, found := slices.BinarySearch(l.connected, to)
	switch {
	case up && !found:
		l.connected = slices.Insert(l.connected, i, to)
	case !up && found:
		l.connected = slices.Delete(l.connected, i, i+1)
	}
	now := slices.Clone(l.connected)
	l.mu.Unlock()
	if l.cfg.Connected != nil && up != found {
		l.cfg.Connected(now)
	}
}

func (l *Links) hello() *peerv1.Hello {
	mine := l.cfg.Versions()
	return &peerv1.Hello{
		OldestVersion: helloBase + uint32(mine.Oldest), NewestVersion: helloBase + uint32(mine.Newest),
		Cluster: l.cfg.Cluster, Site: string(l.cfg.Self),
		MembersVersion: l.cfg.MembersVersion, MembersHash: l.hash,
		ClusterVersion: uint32(mine.Cluster), Undecided: !mine.Begun, Term: l.cfg.Term,
	}
}

// helloBase is what a greeting adds to a version: there were four formats of messages
// before the first version.
const helloBase = 4

// speaker returns the versions that a greeting tells. A build of the first version has no
// word of the cluster's, and serves in clusters of that version alone.
func speaker(h *peerv1.Hello) versions.Speaker {
	from := func(told uint32) versions.Version { return versions.Version(told - min(told, helloBase)) }
	s := versions.Speaker{
		Range:   versions.Range{Oldest: from(h.GetOldestVersion()), Newest: from(h.GetNewestVersion())},
		Cluster: versions.Version(h.GetClusterVersion()), Begun: !h.GetUndecided(),
	}
	if s.Cluster == 0 {
		s.Cluster, s.Begun = versions.First, true
	}
	return s
}

// greet returns why a peer with this greeting is refused, or nil.
func (l *Links) greet(h *peerv1.Hello) error {
	mine := l.hello()
	switch {
	case h == nil:
		return fmt.Errorf("it did not introduce itself")
	case h.GetCluster() != l.cfg.Cluster:
		return fmt.Errorf("it belongs to cluster %q, not %q", h.GetCluster(), l.cfg.Cluster)
	case h.GetSite() == string(l.cfg.Self) || l.cfg.MembersVersion > 0 && l.link(core.SiteID(h.GetSite())) == nil:
		return fmt.Errorf("site %q is no other member", h.GetSite())
	}
	if err := versions.Judge(string(l.cfg.Self), l.cfg.Versions(), h.GetSite(), speaker(h)); err != nil {
		return err
	}
	if h.GetMembersVersion() == mine.MembersVersion && mine.MembersVersion > 0 && !slices.Equal(h.GetMembersHash(), mine.MembersHash) {
		return fmt.Errorf("it was bootstrapped with another member set")
	}
	return nil
}
