package core

import (
	"cmp"
	"fmt"
)

// ModeRecord is the last mode decided by the catalogue. The zero value says that the
// catalogue has decided none.
type ModeRecord struct {
	// Protocol is a name in ProtocolNames; empty for none.
	Protocol string `json:"protocol,omitempty"`
	// Version counts the decided changes of the mode, from 1.
	Version uint64 `json:"version,omitempty"`
}

// Mode names the protocol under which a site begins instances. Whatever it says, the site
// takes part in the instances of every protocol.
type Mode struct {
	// Decided is the mode decided by the catalogue, as far as this site knows.
	Decided ModeRecord
	// Configured is the site's own choice, in force until the catalogue decides a mode.
	Configured string
}

// Protocol returns the name of the protocol in force at the site.
func (m Mode) Protocol() string { return cmp.Or(m.Decided.Protocol, m.Configured) }

func (r ModeRecord) validate() error {
	_, known := protocols[r.Protocol]
	if !known && r.Protocol != "" || (r.Protocol == "") != (r.Version == 0) {
		return fmt.Errorf("mode %.64q, version %d", r.Protocol, r.Version)
	}
	return nil
}

// modeNow returns the mode of the site.
func (c *assessing) modeNow() Mode { return Mode{Decided: c.mode, Configured: c.cfg.Protocol} }

// variant is the variant for an instance begun now. An instance under way ends under its
// own variant.
func (c *assessing) variant(e *entity) Variant {
	return protocols[c.modeNow().Protocol()].Choose(c.majorityThere(e))
}

// settleMode carries out a decided change of the mode, for instances that this site
// begins from now on.
func (cat *catalogue) settleMode(ch *CatalogueChange) (Code, uint64) {
	if ch.Generation != 0 && ch.Generation != cat.c.mode.Version {
		return Mismatch, cat.c.mode.Version
	}
	cat.c.mode = ModeRecord{Protocol: ch.Mode, Version: cat.c.mode.Version + 1}
	return OK, cat.c.mode.Version
}
