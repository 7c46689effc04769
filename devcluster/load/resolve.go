package load

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/samya-db/samya/devcluster/ledger"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/httpapi"
)

// The pauses between two attempts to settle an unknown outcome.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 2 * time.Second
)

// verdict is the meaning of an answer for its request.
type verdict uint8

const (
	executed verdict = iota // the tokens moved
	refused                 // there were not enough tokens
	failed                  // not executed, for another reason
	unknown                 // may have been executed
)

// booked is the verdict as the ledger knows it.
func (v verdict) booked() ledger.Outcome {
	if v == executed {
		return ledger.Executed
	}
	return ledger.Refused
}

// answer is an answer judged.
type answer struct {
	verdict verdict
	site    string // with unknown: the site to ask again; empty: not known
	lacking string // with refused: the entity that lacked the tokens
	err     error
}

// text returns the error's text; empty for none.
func (a answer) text() string {
	if a.err == nil {
		return ""
	}
	return a.err.Error()
}

// judge judges the error of a first attempt, sent to site (empty: any).
func judge(err error, site string) answer {
	if err == nil {
		return answer{verdict: executed}
	}
	if e, ok := errors.AsType[*apierr.Error](err); ok {
		switch {
		case e.Reason == apierr.OutOfTokens, e.Reason == apierr.ExceedsLimit:
			return answer{verdict: refused, lacking: cmp.Or(e.Lacking, e.Entity), err: err}
		case e.Reason.NothingDone():
			return answer{verdict: failed, err: err}
		case e.Site != "":
			site = e.Site
		}
		return answer{verdict: unknown, site: site, err: err}
	}
	if e, ok := errors.AsType[*httpapi.UnreachableError](err); ok && !e.Sent {
		return answer{verdict: failed, err: err}
	}
	return answer{verdict: unknown, site: site, err: err}
}

// settles reports whether the answer to a repeat settles the outcome of the request.
// Most refusals say only that the repeat did nothing, and do not settle the first
// attempt. Being out of tokens does: had the first attempt been executed, its own answer
// would have come.
func settles(a answer) bool {
	return a.verdict == executed || a.verdict == refused || errors.Is(a.err, apierr.EntityNotFound)
}

// pursue repeats the request at the site that may have executed it until an answer
// settles the outcome. It stops when ctx is done, or after ResolveFor; then the request
// stays unknown. A request without a known site stays unknown too: a repeat elsewhere
// would move the tokens twice.
func (r *region) pursue(ctx context.Context, q request, a answer) {
	if a.site == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.ResolveFor)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		again := r.send(ctx, q, a.site)
		if !settles(again) {
			continue
		}
		q.booked.resolve(again.verdict.booked())
		r.count(func(c *Counts) {
			c.Resolved++
			c.Unresolved--
		})
		r.settle(q, again, false)
		return
	}
}
