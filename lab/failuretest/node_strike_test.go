package failuretest

import (
	"context"
	"time"
)

// manner is how a proxy strikes at a call.
type manner string

// The manners of strikes.
const (
	// killBefore kills the node instead of passing its call on.
	killBefore manner = "before"
	// killAfter kills the node once the answer has passed.
	killAfter manner = "after"
	// killLost kills the node instead of passing the answer on.
	killLost manner = "answer lost"
	// cutLost breaks the connection instead of passing the answer on. The node lives.
	cutLost manner = "answer lost, alive"
)

// strike is a plan to strike at a call of a node.
type strike struct {
	manner manner
	// kind is the kind of the call; empty: any. left counts the calls up to the struck call.
	kind etcdCall
	left int
	// kill kills the node.
	kill func()
	done chan struck

	// conn and stream are the call, once it passed.
	conn   *proxied
	stream uint32
	called etcdCall
	over   bool
}

// struck tells of a strike.
type struck struct {
	kind etcdCall
	at   time.Time
}

// arm plans a strike, in place of an earlier plan.
func (p *etcdProxy) arm(s *strike) {
	s.done = make(chan struck, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan = s
}

// await waits for the strike. It returns false, and drops the plan, if the strike does not
// come until ctx ends.
func (p *etcdProxy) await(ctx context.Context, s *strike) (struck, bool) {
	select {
	case got := <-s.done:
		return got, true
	case <-ctx.Done():
	}
	p.drop(s)
	select {
	case got := <-s.done: // just now
		return got, true
	default:
		return struck{}, false
	}
}

// drop ends a plan that has not come to its call.
func (p *etcdProxy) drop(s *strike) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.plan == s {
		p.plan = nil
	}
}

// call sees a whole call just before its last frame passes.
func (p *etcdProxy) call(c *proxied, stream uint32, kind etcdCall) error {
	p.mu.Lock()
	p.seen[kind]++
	s := p.plan
	if s == nil || s.conn != nil || s.kind != "" && s.kind != kind {
		p.mu.Unlock()
		return nil
	}
	if s.left--; s.left > 0 {
		p.mu.Unlock()
		return nil
	}
	s.conn, s.stream, s.called = c, stream, kind
	p.mu.Unlock()
	if s.manner == killBefore {
		return p.hit(s)
	}
	return nil
}

// answer sees a frame of an answer.
func (p *etcdProxy) answer(c *proxied, f *frame, passed bool) error {
	p.mu.Lock()
	s := p.plan
	its := s != nil && s.conn == c && s.stream == f.stream()
	p.mu.Unlock()
	if !its {
		return nil
	}
	switch {
	case s.manner == killAfter && passed && f.ends():
	case (s.manner == killLost || s.manner == cutLost) && !passed:
	default:
		return nil
	}
	return p.hit(s)
}

// hit strikes, and ends the connection.
func (p *etcdProxy) hit(s *strike) error {
	p.mu.Lock()
	over := s.over || p.plan != s
	s.over, p.plan = true, nil
	p.mu.Unlock()
	if over {
		return nil
	}
	if s.manner != cutLost {
		s.kill()
	}
	s.done <- struck{s.called, time.Now()}
	return errStruck
}
