package membership

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/samya-db/samya/internal/preset"
	"github.com/samya-db/samya/internal/reload"
)

// errClosed is the error of a closed Membership.
var errClosed = errors.New("membership is closed")

// Membership is this node's part in gossip. Its methods may be called from
// several goroutines.
type Membership struct {
	list   *memberlist.Memberlist
	table  *table
	log    *slog.Logger
	addr   string
	seeds  []string
	pace   preset.Seeds
	cancel context.CancelFunc
	stop   func() bool
	loop   sync.WaitGroup

	// keyFile and keyring are the keys of gossip; keyProblem is the error of the last
	// look at the file.
	keyFile    string
	keyring    *memberlist.Keyring
	keyMu      sync.Mutex
	keyProblem reload.Fault

	// mu serializes operations that memberlist does not allow side by side: updates of
	// this node, leaving and shutting down.
	mu     sync.Mutex
	closed bool
}

// Start begins to listen and to gossip. It does not wait for a seed. The seeds are called
// in the background, with back-off, until a seed answers. They are called again from time
// to time, so that the halves of a partition find each other. The end of ctx has the
// effect of Close. Errors: a bad Config, an address in use.
func Start(ctx context.Context, c Config) (*Membership, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("membership settings: %w", err)
	}
	logger := cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	ip, port, err := ipPort(c.Bind)
	if err != nil {
		return nil, fmt.Errorf("parse bind address: %w", err)
	}
	timings, _ := preset.Of(c.Preset) // which Validate has checked
	conf := timings.Gossip()
	conf.Name = c.Self.ID()
	// The label keeps clusters apart below everything else; with a key it is
	// authenticated.
	conf.Label = "samya/" + c.Self.Cluster
	conf.BindAddr, conf.BindPort = ip.String(), port
	conf.AdvertisePort = port
	if c.Advertise != "" {
		aip, aport, err := ipPort(c.Advertise)
		if err != nil {
			return nil, fmt.Errorf("parse advertised address: %w", err)
		}
		conf.AdvertiseAddr, conf.AdvertisePort = aip.String(), aport
	}
	var keyring *memberlist.Keyring
	if c.KeyFile != "" {
		keys, err := ReadKeys(c.KeyFile)
		if err != nil {
			return nil, err
		}
		if keyring, err = memberlist.NewKeyring(keys, keys[0]); err != nil {
			return nil, fmt.Errorf("gossip keys: %w", err)
		}
		conf.Keyring = keyring
	}
	conf.Logger = log.New(lineWriter{logger}, "", 0)
	// A process that died and came back at another address takes its name over as soon as
	// the old process is known to be dead.
	conf.DeadNodeReclaimTime = time.Millisecond
	if c.tune != nil {
		c.tune(conf)
	}

	ctx, cancel := context.WithCancel(ctx)
	m := &Membership{log: logger, seeds: slices.Clone(c.Join), pace: timings.Seeds, cancel: cancel, keyFile: c.KeyFile, keyring: keyring}
	m.table = newTable(c.Self)
	conf.Delegate, conf.Events, conf.Alive = m.table, m.table, m.table
	conf.Merge, conf.Ping = m.table, m.table
	conf.Transport, err = newTransport(ctx, conf)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("listen for gossip on %s: %w", c.Bind, err)
	}
	m.list, err = memberlist.Create(conf)
	if err != nil {
		cancel()
		return nil, errors.Join(fmt.Errorf("start gossip on %s: %w", c.Bind, err), conf.Transport.Shutdown())
	}
	self := m.list.LocalNode()
	m.addr = net.JoinHostPort(self.Addr.String(), strconv.Itoa(int(self.Port)))
	m.loop.Go(func() { m.keepJoined(ctx) })
	if keyring != nil {
		m.loop.Go(func() { m.followKeys(ctx) })
	}
	m.stop = context.AfterFunc(ctx, func() { _ = m.shutdown() })
	return m, nil
}

// Addr returns the host:port at which others reach this node's gossip.
func (m *Membership) Addr() string { return m.addr }

// Nodes returns the nodes heard of, this node included, ordered by role, name and instance.
// Dead nodes stay for ten minutes.
func (m *Membership) Nodes() []Member { return m.table.members(time.Now()) }

// Sites returns the sites among Nodes, with a single node for each site, ordered by name. Of the
// nodes of a site it has the node of the highest term, dead or alive, and of equal terms a
// node that is alive. It is not the cluster's member set; see the package comment.
func (m *Membership) Sites() []Member { return latest(m.Nodes()) }

// Changed returns a channel that is closed at the next change of Nodes: a node joined,
// died or tells something new of itself.
func (m *Membership) Changed() <-chan struct{} { return m.table.changed() }

// UpdateSelf replaces the node's own description by n: other addresses, region, load,
// term or standbys. Name, instance, role and cluster cannot change. It waits up to timeout for the news to leave this
// process; they spread even if that takes longer.
func (m *Membership) UpdateSelf(n Node, timeout time.Duration) error {
	if err := n.Validate(); err != nil {
		return fmt.Errorf("update own node: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return errClosed
	}
	if err := m.table.setSelf(n); err != nil {
		return fmt.Errorf("update own node: %w", err)
	}
	if err := spread(m.list.UpdateNode, m.table.adopted, timeout); err != nil {
		return fmt.Errorf("spread own node: %w", err)
	}
	return nil
}

const (
	// spreadStep is how long spread waits at first before it repeats the update; it waits
	// twice as long each time.
	spreadStep = 250 * time.Millisecond
	// spreadMost bounds the repetitions beyond the timeout of an update that memberlist drops.
	spreadMost = 16
)

// spread has memberlist update this node, and waits up to timeout for the news to leave.
// Memberlist numbers an update before it locks its state. Where it refutes a rumour about
// this node in between, it drops the update without a word. And it tells that the news has
// left only if the caller waits already: where gossip is faster than the caller, nothing
// ends the wait. So spread repeats updates, also beyond the timeout until one is adopted.
func spread(update func(timeout time.Duration) error, adopted func() bool, timeout time.Duration) error {
	deadline, wait := time.Now().Add(timeout), spreadStep
	for calls := 1; ; calls++ {
		rest := time.Until(deadline)
		err := update(max(min(wait, rest), time.Millisecond))
		if err == nil || rest <= wait && (adopted() || calls >= spreadMost) {
			return err
		}
		wait *= 2
	}
}

// Leave tells the other nodes that this node leaves, so that they need not find out. It
// waits up to timeout for the word to go out. Close must follow.
func (m *Membership) Leave(timeout time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return errClosed
	}
	if err := m.list.Leave(max(timeout, time.Millisecond)); err != nil {
		return fmt.Errorf("leave the gossip: %w", err)
	}
	return nil
}

// Close ends gossip and frees the listeners. Without Leave the other nodes take this node
// for dead after a while. Close may be called more than once.
func (m *Membership) Close() error {
	m.stop()
	err := m.shutdown()
	m.loop.Wait()
	return err
}

func (m *Membership) shutdown() error {
	m.cancel()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	if err := m.list.Shutdown(); err != nil {
		return fmt.Errorf("stop gossip: %w", err)
	}
	return nil
}

// keepJoined calls the seeds, and lost members, until ctx ends: with back-off while this
// node is alone, steadily otherwise.
func (m *Membership) keepJoined(ctx context.Context) {
	backoff := m.pace.First
	for {
		if targets := m.table.targets(m.seeds, m.addr); len(targets) > 0 {
			m.join(ctx, targets)
		}
		wait := m.pace.Steady
		if m.table.alone() {
			wait, backoff = backoff, min(2*backoff, m.pace.Most)
		} else {
			backoff = m.pace.First
		}
		// Jitter keeps nodes that started together from calling together.
		t := time.NewTimer(wait/2 + rand.N(wait))
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
	}
}

// join calls all targets at once: a target that does not answer holds up no other. A node
// that takes over from a machine without power needs the other targets right away.
func (m *Membership) join(ctx context.Context, targets []string) {
	var calls sync.WaitGroup
	for _, target := range targets {
		calls.Go(func() {
			if _, err := m.list.Join([]string{target}); err != nil && ctx.Err() == nil {
				m.log.DebugContext(ctx, "a seed does not answer", slog.Any("error", err))
			}
		})
	}
	calls.Wait()
}

// lineWriter passes memberlist's log lines on.
type lineWriter struct{ log *slog.Logger }

func (w lineWriter) Write(b []byte) (int, error) {
	w.log.Debug("gossip", slog.String("line", string(bytes.TrimSpace(b))))
	return len(b), nil
}
