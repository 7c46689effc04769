package access

import (
	"fmt"
	"maps"
	"net"
	"slices"

	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/tlsconf"
)

// Exposure is what a process is about to listen on, and how it is guarded.
type Exposure struct {
	// Calls are the addresses for callers and peers, by the names of their settings;
	// Gossip is that of gossip.
	Calls  map[string]string
	Gossip string
	// TLS, Access and GossipKey tell whether there are certificates, an access file
	// and a key of gossip.
	TLS, Access, GossipKey bool
}

// Check refuses what others than this machine could reach without proving who they
// are, or could listen in on.
func (e Exposure) Check() error {
	for _, setting := range slices.Sorted(maps.Keys(e.Calls)) {
		addr := e.Calls[setting]
		if !valid(addr) || tlsconf.Loopback(addr) || e.TLS && e.Access {
			continue
		}
		return exposed(setting, addr, "certificates and an access file")
	}
	if valid(e.Gossip) && !tlsconf.Loopback(e.Gossip) && !e.GossipKey {
		return exposed("gossip", e.Gossip, "a key of gossip")
	}
	return nil
}

// valid reports whether an address can be one at all; others are refused elsewhere, by
// what is wrong with them.
func valid(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && host != ""
}

func exposed(setting, addr, needs string) error {
	return &name.Error{Field: setting, Problem: fmt.Sprintf("%.128s can be reached from other machines: that needs %s, or to be forced with --insecure", addr, needs)}
}
