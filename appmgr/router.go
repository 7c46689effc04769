package appmgr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

const (
	// maxSites bounds the sites that the router keeps a connection to.
	maxSites = 128
	// retryUnreachable is the advice to a caller when no site can be reached:
	// by then each was probed again.
	retryUnreachable = time.Second
)

// router knows the sites and relays calls to them.
type router struct {
	cfg     Config
	metrics *metrics
	log     *slog.Logger

	mu      sync.Mutex
	links   map[string]*link // by site name
	members []*samyav1.Site  // the member set as a site last told it
	loops   sync.WaitGroup
}

func newRouter(cfg Config, m *metrics) *router {
	return &router{cfg: cfg, metrics: m, log: cfg.Logger, links: map[string]*link{}}
}

// run follows the directory and probes the sites until ctx ends, then closes
// the links.
func (r *router) run(ctx context.Context) {
	r.loops.Go(func() { r.keepMembers(ctx) })
	for {
		changed := r.cfg.Directory.Changed()
		r.follow(ctx, r.cfg.Directory.Sites())
		select {
		case <-ctx.Done():
			r.follow(ctx, nil)
			r.loops.Wait()
			return
		case <-changed:
		}
	}
}

// follow makes the links those to the sites of infos.
func (r *router) follow(ctx context.Context, infos []SiteInfo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	want := map[string]SiteInfo{}
	for _, i := range infos {
		want[i.Name] = i
	}
	for name, l := range r.links {
		if want[name] != l.info {
			delete(r.links, name)
			r.metrics.forget(name)
			l.retire()
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if _, ok := r.links[name]; ok {
			continue
		}
		if len(r.links) >= maxSites {
			r.log.WarnContext(ctx, "more sites than can be kept connected", slog.Int("limit", maxSites))
			return
		}
		info := want[name]
		l, err := newLink(info, max(0, r.cfg.Latency(r.cfg.Region, info.Region)), r.cfg.Dial)
		if err != nil {
			r.log.ErrorContext(ctx, "cannot connect to a site", slog.String("site", name), slog.Any("error", err))
			continue
		}
		pctx, cancel := context.WithCancel(ctx)
		l.stop = cancel
		r.links[name] = l
		r.loops.Go(func() { r.probe(pctx, l) })
	}
}

// candidates returns the links as the choice sees them.
func (r *router) candidates() []candidate {
	r.mu.Lock()
	defer r.mu.Unlock()
	cs := make([]candidate, 0, len(r.links))
	for _, l := range r.links {
		cs = append(cs, l.candidate(r.cfg.Region, r.cfg.MaxPerSite))
	}
	return cs
}

func (r *router) link(site string) *link {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.links[site]
}

// reachable reports whether any site answers.
func (r *router) reachable() bool {
	return slices.ContainsFunc(r.candidates(), func(c candidate) bool { return c.health.reach == up })
}

// call is one request to be relayed.
type call struct {
	method    string
	req, resp proto.Message
	// read: the request changes nothing, so it may be sent to a second site
	// whatever became of the first.
	read bool
	// site, if set, is the only site that may answer; first, if set, is asked before
	// the others.
	site, first string
	// by is the field that names the site; empty: "site".
	by string
	// requestID and entity are told with an error.
	requestID, entity string
	// moves is set for acquires and releases, which are numbered.
	moves *movement
}

// do relays c to the best site, and on to the next one where that is safe. Its
// error is an *apierr.Error.
func (r *router) do(ctx context.Context, c call) error {
	if c.site != "" {
		return r.doAt(ctx, c)
	}
	cs := r.candidates()
	var last *apierr.Error
	sites := order(cs, time.Now())
	if i := slices.Index(sites, c.first); i > 0 {
		sites = slices.Insert(slices.Delete(sites, i, i+1), 0, c.first)
	}
	for i, site := range sites {
		if l := r.link(site); i > 0 && l != nil && l.state().reach == down {
			continue
		}
		c.moves.next()
		again, err := r.try(ctx, c, site, i+1 < len(sites))
		if !again {
			return r.final(c, err)
		}
		last = firstOverload(last, apierr.From(err))
	}
	if c.moves != nil && len(c.moves.unclear) > 0 {
		return r.final(c, last)
	}
	if last == nil && slices.ContainsFunc(cs, func(x candidate) bool { return x.full && x.health.reach != down }) {
		return r.final(c, apierr.Overload("", time.Second))
	}
	return r.final(c, r.annotate(cmp.Or(last, unreachable("")), c, ""))
}

// firstOverload prefers a refusal for overload over other reasons to go on:
// it says when to try again.
func firstOverload(a, b *apierr.Error) *apierr.Error {
	if a != nil && (a.Reason == apierr.Overloaded || b.Reason != apierr.Overloaded) {
		return a
	}
	return b
}

// doAt relays c to the one site that it names.
func (r *router) doAt(ctx context.Context, c call) error {
	if r.link(c.site) == nil {
		ms, err := r.membersNow(ctx)
		if err == nil && !slices.ContainsFunc(ms, func(s *samyav1.Site) bool { return s.GetName() == c.site }) {
			return apierr.Invalid(cmp.Or(c.by, "site"), "no such site")
		}
		return r.final(c, r.annotate(unreachable(c.site), c, c.site))
	}
	c.moves.next()
	_, err := r.try(ctx, c, c.site, false)
	return r.final(c, err)
}

func unreachable(site string) *apierr.Error {
	e := &apierr.Error{
		Reason: apierr.SiteUnavailable, Message: "no site can be reached; nothing was done",
		RetryAfter: retryUnreachable, Site: site,
	}
	if site != "" {
		e.Message = fmt.Sprintf("site %q cannot be reached; nothing was done", site)
	}
	return e
}

// try makes c at site. Where it failed, again tells whether another site may be
// tried; more says that there is one.
func (r *router) try(ctx context.Context, c call, site string, more bool) (again bool, err error) {
	l := r.link(site)
	if l == nil || !l.enter(r.cfg.MaxPerSite) {
		if l == nil {
			return true, unreachable(site)
		}
		return true, r.annotate(apierr.Overload(site, time.Second), c, site)
	}
	defer l.leave()
	tctx, done := c.bound(ctx, l, more)
	defer done()
	f, err := l.invoke(tctx, c.method, c.req, c.resp)
	r.metrics.siteCall(site, f)
	if err == nil {
		return false, nil
	}
	return r.judge(ctx, tctx, c, l, f, err)
}

// judge turns what became of a call that failed into an error, and decides
// whether another site may be tried. It also takes the failure into the site's
// health. The context of the try ends before that of the caller, or with it.
func (r *router) judge(ctx, try context.Context, c call, l *link, f fate, err error) (again bool, _ error) {
	site := l.info.Name
	if f == answered {
		e := apierr.FromGRPC(err)
		switch e.Reason {
		case apierr.Overloaded:
			l.update(func(h *health) { h.refused(time.Now(), e.RetryAfter) })
			return true, r.annotate(e, c, site)
		case apierr.ShuttingDown:
			l.update((*health).broken)
			return true, r.annotate(e, c, site)
		case apierr.SiteUnavailable, apierr.QueueFull:
			return true, r.annotate(e, c, site)
		case apierr.DeadlineExceeded:
			// It came to the site when the try was over, and was not begun.
			return try.Err() != nil && ctx.Err() == nil, r.annotate(e, c, site)
		case apierr.OutcomeUnknown, apierr.Canceled:
			return c.unclear(site) && ctx.Err() == nil, r.unknown(c, site, e)
		}
		return false, r.annotate(e, c, site)
	}
	if cause := ctx.Err(); cause != nil {
		// The caller's time is up; that says nothing about the site.
		if f != unsent {
			c.unclear(site)
		}
		return false, r.outOfTime(c, site, f, cause)
	}
	if try.Err() == nil {
		l.update((*health).broken)
	}
	if f == unsent || c.read {
		e := unreachable(site)
		e.Err = err
		return true, r.annotate(e, c, site)
	}
	return c.unclear(site), r.unknown(c, site, err)
}

// unclear notes that a try at site may have run, and reports whether another
// site may be tried.
func (c *call) unclear(site string) bool {
	if c.moves == nil {
		return c.read
	}
	c.moves.unclear = append(c.moves.unclear, site)
	return c.moves.owned
}

// outOfTime is the error of a call that ended with its context.
func (r *router) outOfTime(c call, site string, f fate, cause error) *apierr.Error {
	switch {
	case f == unsent || c.read:
		return r.annotate(ended(cause), c, "")
	case errors.Is(cause, context.Canceled):
		e := r.unknown(c, site, cause)
		e.Reason = apierr.Canceled
		return e
	}
	return r.unknown(c, site, cause)
}

// ended is the error of a request whose context ended before it was sent.
func ended(cause error) *apierr.Error {
	if errors.Is(cause, context.Canceled) {
		return &apierr.Error{Reason: apierr.Canceled, Message: "canceled before it was sent to a site", Err: cause}
	}
	return &apierr.Error{Reason: apierr.DeadlineExceeded, Message: "the deadline passed before a site was reached; nothing was done", Err: cause}
}

// unknown is the error of a call that may have been executed at site.
func (r *router) unknown(c call, site string, err error) *apierr.Error {
	e := apierr.Unknown(c.requestID, site, err)
	if c.read {
		e.Message = fmt.Sprintf("site %q did not answer", site)
	}
	e.Entity = c.entity
	if c.moves != nil {
		c.moves.repeatable(e)
	}
	return e
}

// annotate fills in what e does not say of the call itself.
func (r *router) annotate(e *apierr.Error, c call, site string) *apierr.Error {
	a := *e
	a.RequestID = cmp.Or(a.RequestID, c.requestID)
	a.Entity = cmp.Or(a.Entity, c.entity)
	a.Site = cmp.Or(a.Site, site)
	return &a
}
