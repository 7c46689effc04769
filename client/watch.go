package client

import (
	"context"
	"iter"
	"time"

	"github.com/samya-db/samya/internal/mux"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

const (
	// resumeTime is how long a watch that broke off looks for another target.
	resumeTime = 30 * time.Second
	// resumePause keeps a watch that breaks off again and again from asking without rest.
	resumePause = 50 * time.Millisecond
)

// Watch tells the present state of an entity and each later state, at most ten a second,
// until the entity is deleted, ctx ends or the client is closed. With the ResumeToken of an
// earlier state, also of another client, it begins after that state; empty: with the present
// one. A watch that breaks off goes on at another target. It ends with an error, an *Error,
// unless the entity was deleted or the loop is left.
func (c *Client) Watch(ctx context.Context, entity, resumeToken string) iter.Seq2[Entity, error] {
	return func(yield func(Entity, error) bool) {
		w := &watching{
			c: c, q: question{entity: entity}, yield: yield,
			req: &samyav1.WatchEntityRequest{Name: entity, ResumeToken: resumeToken},
		}
		if err := w.run(ctx); err != nil {
			yield(Entity{}, err)
		}
	}
}

// watching is a watch under way.
type watching struct {
	c     *Client
	q     question
	req   *samyav1.WatchEntityRequest
	yield func(Entity, error) bool
	told  bool // the present stream has told a state
}

// run watches at target after target. Its error is an *Error.
func (w *watching) run(ctx context.Context) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	k := &keeper{end: end}
	if !w.c.keep(k, nil) {
		return w.q.failed(ended(ErrClosed))
	}
	defer w.c.unkeep(k)
	now := time.Now()
	deadline, t := now.Add(resumeTime), tour{c: w.c}
	t.start(now, "")
	for {
		at, more := t.target()
		if at == nil {
			if !t.pause(ctx, deadline, now) {
				return w.q.failed(w.q.end(context.Cause(ctx)))
			}
			now = time.Now()
			t.start(now, "")
			continue
		}
		err := w.stream(ctx, at, more)
		if err == nil {
			return nil
		}
		now = time.Now()
		fate := mux.Ended(err)
		settled := w.q.judge(fate, err)
		t.learn(at, fate, w.q.last, now)
		switch {
		case ctx.Err() != nil:
			return w.q.failed(ended(context.Cause(ctx)))
		case settled:
			return w.q.failed(w.q.end(nil))
		case w.told:
			sleep(ctx, resumePause)
			now = time.Now()
			deadline, t = now.Add(resumeTime), tour{c: w.c}
			t.start(now, "")
		}
	}
}

// stream watches at a target. It returns nil if the watch is over: the entity was deleted, or
// the loop was left. more: another target can be asked if this one says nothing.
func (w *watching) stream(ctx context.Context, at *target, more bool) error {
	w.told = false
	if err := at.enter(); err != nil {
		return err
	}
	defer at.leave()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var silent *time.Timer
	if more {
		silent = time.AfterFunc(w.c.cfg.TryTime, cancel)
		defer silent.Stop()
	}
	stream, err := samyav1.NewEntityServiceClient(at.conn).WatchEntity(ctx, w.req)
	if err != nil {
		return err
	}
	for {
		state, err := stream.Recv()
		if err != nil {
			return err
		}
		if silent != nil {
			silent.Stop()
		}
		w.told, w.req.ResumeToken = true, state.GetResumeToken()
		e := entityOf(state.GetEntity(), state.GetUsage())
		e.Deleted, e.ResumeToken = state.GetDeleted(), state.GetResumeToken()
		if !w.yield(e, nil) || e.Deleted {
			return nil
		}
	}
}
