package core

import (
	"fmt"

	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/policy"
	"github.com/samya-db/samya/site/core/stored"
)

func validMode(r answer.DecidedMode) error {
	_, err := policy.ProtocolNamed(r.Protocol)
	if err != nil && r.Protocol != "" || (r.Protocol == "") != (r.Version == 0) {
		return fmt.Errorf("mode %.64q, version %d", r.Protocol, r.Version)
	}
	return nil
}

// modeNow returns the mode of the site.
func (c *assessing) modeNow() answer.Mode {
	return answer.Mode{Decided: c.mode, Configured: c.cfg.Protocol}
}

// variant is the variant for an instance begun now. An instance under way ends under its
// own variant.
func (c *assessing) variant(e *entity) policy.Variant {
	return c.protocol().Choose(c.majorityThere(e))
}

// protocol is the protocol in force.
func (c *assessing) protocol() policy.Protocol {
	p, err := policy.ProtocolNamed(c.modeNow().Protocol())
	if err != nil {
		panic(fmt.Sprintf("core: a mode that was checked: %v", err))
	}
	return p
}

// settleMode carries out a decided change of the mode, for instances that this site
// begins from now on.
func (cat *catalogue) settleMode(ch *stored.CatalogueChange) (answer.Code, uint64) {
	if ch.Generation != 0 && ch.Generation != cat.c.mode.Version {
		return answer.Mismatch, cat.c.mode.Version
	}
	cat.c.mode = answer.DecidedMode{Protocol: ch.Mode, Version: cat.c.mode.Version + 1}
	return answer.OK, cat.c.mode.Version
}
