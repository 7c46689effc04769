package peer

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/samya-db/samya/site/core"
)

// refusal is why this site and a member do not work together: the reason of this site,
// and the reason of the member; empty for none.
type refusal struct{ mine, theirs string }

// Refusals returns why this site and members refuse to work together, by their names.
func (l *Links) Refusals() map[core.SiteID]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	why := make(map[core.SiteID]string, len(l.refusals))
	for site, r := range l.refusals {
		if l.link(site) == nil {
			continue
		}
		why[site] = cmp.Or(r.mine, r.theirs)
	}
	return why
}

// refuse notes why this site refuses a member, and refusedBy why a member refuses this
// site. They log a reason once, and not at each attempt to connect.
func (l *Links) refuse(site core.SiteID, why error) {
	l.refused(site, why.Error(), func(r *refusal) *string { return &r.mine })
}

func (l *Links) refusedBy(site core.SiteID, why error) {
	l.refused(site, why.Error(), func(r *refusal) *string { return &r.theirs })
}

func (l *Links) refused(site core.SiteID, why string, part func(*refusal) *string) {
	l.mu.Lock()
	r := l.refusals[site]
	known := *part(&r) == why
	if *part(&r) = why; l.link(site) != nil {
		l.refusals[site] = r
	}
	l.mu.Unlock()
	if !known {
		l.cfg.Logger.LogAttrs(context.Background(), slog.LevelWarn, "a peer is refused",
			slog.String("peer", string(site)), slog.String("error", why))
	}
}

// accepted notes that this site and a member work together.
func (l *Links) accepted(site core.SiteID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.refusals, site)
}
