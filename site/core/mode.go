package core

import (
	"cmp"
	"fmt"
)

// ModeRecord is the mode that the catalogue last decided on. The zero value
// says that it decided on none yet.
type ModeRecord struct {
	// Protocol is one of ProtocolNames; empty for none.
	Protocol string `json:"protocol,omitempty"`
	// Version counts the decided changes of the mode, from 1.
	Version uint64 `json:"version,omitempty"`
}

// Mode is under which protocol a site begins instances. Whatever it says, the
// site takes part in those of every protocol.
type Mode struct {
	// Decided is what the catalogue decided on, as far as this site knows.
	Decided ModeRecord
	// Configured is the site's own choice: it stands until one is decided.
	Configured string
}

// Protocol returns the name of the one in force at the site.
func (m Mode) Protocol() string { return cmp.Or(m.Decided.Protocol, m.Configured) }

func (r ModeRecord) validate() error {
	_, known := protocols[r.Protocol]
	if !known && r.Protocol != "" || (r.Protocol == "") != (r.Version == 0) {
		return fmt.Errorf("mode %.64q, version %d", r.Protocol, r.Version)
	}
	return nil
}

// modeNow returns the mode of the site.
func (c *Core) modeNow() Mode { return Mode{Decided: c.cat.mode, Configured: c.cfg.Protocol} }

// variant says under which variant an instance that is begun now is begun. An
// instance that is under way ends under its own.
func (c *Core) variant(e *entity) Variant {
	return protocols[c.modeNow().Protocol()].Choose(c.majorityThere(e))
}

// settleMode gives a decided change of the mode its effect on what this site
// begins from now on.
func (cat *catalogue) settleMode(ch *CatalogueChange) (Code, uint64) {
	if ch.Generation != 0 && ch.Generation != cat.mode.Version {
		return Mismatch, cat.mode.Version
	}
	cat.mode = ModeRecord{Protocol: ch.Mode, Version: cat.mode.Version + 1}
	return OK, cat.mode.Version
}
