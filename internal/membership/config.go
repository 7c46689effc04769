package membership

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"

	"github.com/hashicorp/memberlist"

	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/preset"
)

// Config configures a node's part in gossip.
type Config struct {
	// Self is this node.
	Self Node
	// Bind is the IP:port to listen on, with UDP and TCP; port 0 picks a free port.
	Bind string
	// Advertise is the IP:port at which others reach this node; empty: the address of
	// Bind.
	Advertise string
	// Join are seeds, host:port each. This node may be a seed too, and no seed need be
	// up.
	Join []string
	// Preset is the preset of the intervals.
	Preset preset.Name
	// KeyFile has the keys that encrypt and authenticate gossip with AES, as ReadKeys
	// takes them; empty: gossip in clear. The first key encrypts, and all keys are
	// accepted. The file is read again every ten seconds, so that keys can be exchanged.
	// First all nodes accept the new key, then all nodes use it, then no node accepts the
	// old key.
	KeyFile string
	// Logger gets the log; nil: none.
	Logger *slog.Logger

	// tune changes memberlist's settings; for tests.
	tune func(*memberlist.Config)
}

// maxSeeds bounds Join.
const maxSeeds = 64

// Validate checks c; the error names every field at fault, and matches
// *name.Error.
func (c Config) Validate() error {
	errs := []error{c.Self.Validate()}
	bad := func(field, format string, args ...any) {
		errs = append(errs, &name.Error{Field: field, Problem: fmt.Sprintf(format, args...)})
	}
	if _, _, err := ipPort(c.Bind); err != nil {
		bad("bind", "%v", err)
	}
	if c.Advertise != "" {
		if ip, port, err := ipPort(c.Advertise); err != nil {
			bad("advertise", "%v", err)
		} else if port == 0 || ip.IsUnspecified() {
			bad("advertise", "must be an address that others can dial")
		}
	}
	if len(c.Join) > maxSeeds {
		bad("join", "%d seeds, at most %d", len(c.Join), maxSeeds)
	}
	for i, s := range c.Join {
		if s == "" {
			bad(fmt.Sprintf("join[%d]", i), "must be host:port")
		}
		if err := hostPort(fmt.Sprintf("join[%d]", i), s, maxAddress); err != nil {
			errs = append(errs, err)
		}
	}
	errs = append(errs, c.Preset.Check())
	return errors.Join(errs...)
}

// ipPort parses "IP:port". A host name must be refused: memberlist would take it for "all
// interfaces".
func ipPort(s string) (net.IP, int, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return nil, 0, errors.New("must be IP:port")
	}
	ip := net.ParseIP(host)
	if ip == nil {
		return nil, 0, errors.New("must be IP:port, with an IP address and no host name")
	}
	p, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, 0, errors.New("port must be 0 to 65535")
	}
	return ip, int(p), nil
}
