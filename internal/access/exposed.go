package access

import (
	"fmt"
	"maps"
	"net"
	"slices"

	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/tlsconf"
)

// Exposure is the addresses a process is about to listen on, and their protection.
type Exposure struct {
	// Calls are the addresses for callers and peers, by the names of their settings.
	// Gossip is the address of gossip.
	Calls  map[string]string
	Gossip string
	// TLS, Access and GossipKey report whether there are certificates, an access file and
	// a key of gossip.
	TLS, Access, GossipKey bool
}

// Check returns an error for an address that other machines could reach without proving
// who they are, or could listen in on.
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

// valid reports whether addr has the form of an address. Other values are refused
// elsewhere, with a better message.
func valid(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && host != ""
}

func exposed(setting, addr, needs string) error {
	return &name.Error{Field: setting, Problem: fmt.Sprintf("%.128s can be reached from other machines: that needs %s, or to be forced with --insecure", addr, needs)}
}
