package route

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"github.com/samya-db/samya/internal/apierr"
)

// follow makes and retires links until they are exactly the links to the sites of infos. A
// site at another address, or under another node, gets a new link with a health of its own.
func (r *Router) follow(ctx context.Context, infos []SiteInfo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.changed.Add(1)
	want := map[string]SiteInfo{}
	for _, i := range infos {
		want[i.Name] = i
		if r.cfg.local(i.Name) != nil {
			want[i.Name] = r.cfg.Local.info(r.cfg.Region)
		}
	}
	for name, l := range r.links {
		now := want[name]
		if now == l.info {
			continue
		}
		delete(r.links, name)
		r.metrics.forget(name)
		if now.Address != "" && now.Address != l.info.Address {
			r.log.InfoContext(ctx, "a site listens elsewhere", slog.String("site", name), slog.String("address", now.Address))
			l.cut()
			// A connection that hangs takes seconds to close.
			r.loops.Go(l.close)
			continue
		}
		l.retire()
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if _, ok := r.links[name]; ok {
			continue
		}
		if len(r.links) >= MaxSites {
			r.log.WarnContext(ctx, "more sites than can be kept connected", slog.Int("limit", MaxSites))
			return
		}
		info := want[name]
		l, err := r.newLink(info)
		if err != nil {
			r.log.ErrorContext(ctx, "cannot connect to a site", slog.String("site", name), slog.Any("error", err))
			continue
		}
		pctx, cancel := context.WithCancel(ctx)
		l.stop = cancel
		r.links[name] = l
		r.loops.Go(func() { r.probe(pctx, l) })
		r.loops.Go(func() { r.learn(pctx, l) })
	}
}

// try makes c at a site. If it fails, again reports whether another site may be tried.
// more tells whether there is another site. If the site has moved to another address
// during the try, try makes c there too, as far as another site could be tried.
func (r *Router) try(ctx context.Context, c Call, site string, more bool) (again bool, err error) {
	l := r.link(site)
	if l == nil {
		return true, apierr.Unreachable(site)
	}
	again, err = r.tryAt(ctx, c, l, more)
	if !again || l.over.Err() == nil {
		return again, err
	}
	if l = r.link(site); l == nil {
		return again, err
	}
	c.Moves.next()
	return r.tryAt(ctx, c, l, more)
}
