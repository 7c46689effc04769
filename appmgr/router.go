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
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/health"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

const (
	// maxSites bounds the sites that the router keeps connections to.
	maxSites = 128
	// retryUnreachable is the advice to a caller when no site can be reached: each site
	// is probed again within this time.
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

	// changed counts the changes of links and of their health.
	changed atomic.Uint64
	ranked  atomic.Pointer[ranking]
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

// follow makes and retires links until they are exactly the links to the sites of infos.
func (r *router) follow(ctx context.Context, infos []SiteInfo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.changed.Add(1)
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
		l, err := r.newLink(info)
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

// candidates returns the links in the form that order takes.
func (r *router) candidates() []candidate {
	r.mu.Lock()
	defer r.mu.Unlock()
	cs := make([]candidate, 0, len(r.links))
	for _, l := range r.links {
		cs = append(cs, l.candidate(r.cfg.Region, r.cfg.MaxPerSite))
	}
	return cs
}

// ranking is the order in which sites are tried. It is kept until the links or their
// health change.
type ranking struct {
	links []*link
	// changed is the router's count when the ranking was made. until is when the first
	// overloaded site is no longer passed over; zero if no site is overloaded.
	changed uint64
	until   time.Time
}

// best returns the links that are not down in the order in which they are tried. The
// caller must not change the slice.
func (r *router) best(now time.Time) []*link {
	changed := r.changed.Load()
	if k := r.ranked.Load(); k != nil && k.changed == changed && (k.until.IsZero() || now.Before(k.until)) {
		return k.links
	}
	k := &ranking{changed: changed}
	cs := r.candidates()
	for i, c := range cs {
		// do checks whether a site is full when its turn comes.
		cs[i].full = false
		if at := c.health.OverloadedUntil; now.Before(at) && (k.until.IsZero() || at.Before(k.until)) {
			k.until = at
		}
	}
	for _, site := range order(cs, now) {
		if l := r.link(site); l != nil {
			k.links = append(k.links, l)
		}
	}
	r.ranked.Store(k)
	return k.links
}

func (r *router) link(site string) *link {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.links[site]
}

// reachable reports whether any site answers.
func (r *router) reachable() bool {
	return slices.ContainsFunc(r.candidates(), func(c candidate) bool { return c.health.Reach == health.Up })
}

// call is a request to be relayed.
type call struct {
	// The method, its request and the answer to fill in; unset for acquires and releases
	// that move tokens.
	method    string
	req, resp proto.Message
	// read: the request changes nothing, so it may be sent to a second site whatever
	// happened at the first.
	read bool
	// changes, if set, says that the sites decide the request together, and only once by
	// its id: another site may be asked for the decision.
	changes *change
	// site, if set, is the only site that may answer; first, if set, is asked before
	// the others.
	site, first string
	// by is the field that names the site; empty: "site".
	by string
	// until, if set, is when the caller's time is up, unless its context ends before. It
	// is used only with moves.
	until time.Time
	// requestID and entity are added to errors.
	requestID, entity string
	// moves is set for acquires and releases that move tokens, which are numbered.
	moves *movement
}

// send makes the call at a site and returns its fate. The error is nil only if the fate
// is answered.
func (c *call) send(a allowance, l *link) (f fate, err error) {
	switch {
	case c.moves == nil:
		return l.invoke(a.ctx, c.method, c.req, c.resp)
	case c.moves.batch != nil:
		c.moves.granted = new(samyav1.BatchResponse)
		return l.invokeWhile(a, samyav1.TokenService_Batch_FullMethodName, c.moves.batch, c.moves.granted)
	}
	c.moves.result, f, err = l.operate(a, c.moves.operation)
	return f, err
}

// do relays c to the best site, and on to the next site where that is safe. Its error is
// an *apierr.Error.
func (r *router) do(ctx context.Context, c call) error {
	if c.site != "" {
		return r.doAt(ctx, c)
	}
	links := r.best(time.Now())
	if i := slices.IndexFunc(links, func(l *link) bool { return l.info.Name == c.first }); i > 0 {
		links = slices.Insert(slices.Delete(slices.Clone(links), i, i+1), 0, links[i])
	}
	full := func(l *link) bool { return l.full(r.cfg.MaxPerSite) }
	var last *apierr.Error
	passed := false // a site that is full
	for i, l := range links {
		if full(l) {
			passed = true
			continue
		}
		if i > 0 && l.state().Reach == health.Down {
			continue
		}
		c.moves.next()
		again, err := r.try(ctx, c, l.info.Name, slices.ContainsFunc(links[i+1:], func(l *link) bool { return !full(l) }))
		if !again {
			return r.final(c, err)
		}
		last = firstOverload(last, apierr.From(err))
	}
	if c.moves != nil && len(c.moves.unclear) > 0 || c.changes != nil && c.changes.unclear != "" {
		return r.final(c, last)
	}
	if last == nil && passed {
		return r.final(c, apierr.Overload("", time.Second))
	}
	return r.final(c, r.annotate(cmp.Or(last, unreachable("")), c, ""))
}

// firstOverload returns a, or b if a is nil or if only b is a refusal for overload. Such
// a refusal says when to try again.
func firstOverload(a, b *apierr.Error) *apierr.Error {
	if a != nil && (a.Reason == apierr.Overloaded || b.Reason != apierr.Overloaded) {
		return a
	}
	return b
}

// doAt relays c to the site that c names, and to no other.
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

// try makes c at a site. If it fails, again reports whether another site may be tried.
// more tells whether there is another site.
func (r *router) try(ctx context.Context, c call, site string, more bool) (again bool, err error) {
	l := r.link(site)
	if l == nil || !l.enter(r.cfg.MaxPerSite) {
		if l == nil {
			return true, unreachable(site)
		}
		return true, r.annotate(apierr.Overload(site, time.Second), c, site)
	}
	defer l.leave()
	given := c.allowance(ctx, l, more)
	f, err := c.send(given, l)
	l.calls[f].Inc()
	if err == nil {
		return false, nil
	}
	return r.judge(ctx, given.over(), c, l, f, err)
}

// judge turns the fate of a failed call into an error, and reports whether another site
// may be tried. It also records the failure in the site's health. over is why the try is
// over, nil if it is not. The caller's time is never up before the try is over.
func (r *router) judge(ctx context.Context, over error, c call, l *link, f fate, err error) (again bool, _ error) {
	site, timeUp := l.info.Name, c.over(ctx)
	if f == answered {
		e := apierr.FromGRPC(err)
		if c.clockRefused(e, time.Now()) {
			return true, r.annotate(e, c, site)
		}
		switch e.Reason {
		case apierr.Overloaded:
			l.update(func(h *health.Health) { h.Refused(time.Now(), e.RetryAfter) })
			return true, r.annotate(e, c, site)
		case apierr.ShuttingDown:
			l.update((*health.Health).Broken)
			return true, r.annotate(e, c, site)
		case apierr.Unauthenticated, apierr.PermissionDenied:
			// The site refuses this app manager, not its caller.
			e = unreachable(site)
			e.Err = err
			return true, r.annotate(e, c, site)
		case apierr.SiteUnavailable, apierr.QueueFull:
			return true, r.annotate(e, c, site)
		case apierr.DeadlineExceeded:
			// The call reached the site when the try was over, and was not begun.
			return over != nil && timeUp == nil, r.annotate(e, c, site)
		case apierr.OutcomeUnknown, apierr.Canceled:
			return c.unclear(site) && timeUp == nil, r.unknown(c, site, e)
		}
		return false, r.annotate(e, c, site)
	}
	if timeUp != nil {
		// The end of the caller's time says nothing about the site.
		if f != unsent {
			c.unclear(site)
		}
		return false, r.outOfTime(c, site, f, timeUp)
	}
	if over == nil {
		l.update((*health.Health).Broken)
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
	switch {
	case c.changes != nil:
		c.changes.unclear = site
		return true
	case c.moves == nil:
		return c.read
	}
	c.moves.unclear = append(c.moves.unclear, site)
	return c.moves.owned
}

// outOfTime returns the error of a call that ended with its context.
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

// ended returns the error of a request whose context ended before it was sent.
func ended(cause error) *apierr.Error {
	if errors.Is(cause, context.Canceled) {
		return &apierr.Error{Reason: apierr.Canceled, Message: "canceled before it was sent to a site", Err: cause}
	}
	return &apierr.Error{Reason: apierr.DeadlineExceeded, Message: "the deadline passed before a site was reached; nothing was done", Err: cause}
}

// unknown returns the error of a call that may have been executed at site.
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

// annotate returns e with the call's request id, entity and site where e has none.
func (r *router) annotate(e *apierr.Error, c call, site string) *apierr.Error {
	a := *e
	a.RequestID = cmp.Or(a.RequestID, c.requestID)
	a.Entity = cmp.Or(a.Entity, c.entity)
	a.Site = cmp.Or(a.Site, site)
	return &a
}
