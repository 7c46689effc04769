package etcd

import (
	"context"
	"errors"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/samya-db/samya/site/replica"
)

// leader is the connection to the member of etcd that leads. Another member hands a
// transaction on to the leader, and answers only once it has applied the transaction itself.
// A commit at the leader saves both. Nothing rests on it but speed: without a leader, or
// after an error, transactions go to all members in turn.
type leader struct {
	mu sync.Mutex
	// client is connected to the member at endpoint; nil: the leader is not known.
	client   *clientv3.Client
	endpoint string
	lost     chan struct{} // holds a token once the leader is not known any more
	ended    chan struct{}
}

// lookAgain is how often the leader is looked for while it is known, and while not.
const (
	lookAgain = 5 * time.Second
	lookSoon  = 200 * time.Millisecond
)

// follow looks for the leader until the client's end.
func (l *leader) follow(c *Client) {
	l.lost, l.ended = make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(l.ended)
		for {
			wait := lookSoon
			if l.look(c) {
				wait = lookAgain
			}
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-l.lost:
				timer.Reset(lookSoon)
				select {
				case <-timer.C:
				case <-c.ctx.Done():
				}
			case <-c.ctx.Done():
			}
			timer.Stop()
			if c.ctx.Err() != nil {
				l.set(nil, "")
				return
			}
		}
	}()
}

// end waits until the leader's connection is closed. The client's context has ended.
func (l *leader) end() { <-l.ended }

// look asks the members who leads, and connects to that member. It reports whether a member
// leads.
func (l *leader) look(c *Client) bool {
	for _, e := range c.cfg.Endpoints {
		ctx, cancel := context.WithTimeout(c.ctx, c.cfg.Timeout)
		st, err := c.client.Status(ctx, e)
		cancel()
		if err != nil || st.Leader == 0 || st.Leader != st.Header.GetMemberId() {
			continue
		}
		l.mu.Lock()
		known := l.client != nil && l.endpoint == e
		l.mu.Unlock()
		if known {
			return true
		}
		client, err := c.connect(e)
		if err != nil {
			return false
		}
		l.set(client, e)
		return true
	}
	return false
}

// set replaces the connection to the leader. Calls under way at the one before end in an
// error, and are repeated.
func (l *leader) set(client *clientv3.Client, endpoint string) {
	l.mu.Lock()
	before := l.client
	l.client, l.endpoint = client, endpoint
	l.mu.Unlock()
	if before != nil {
		// There is nothing to be done about a failure: no call of it counts.
		_ = before.Close()
	}
}

// or returns the client of the leader, or another client if the leader is not known.
func (l *leader) or(all *clientv3.Client) *clientv3.Client {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.client == nil {
		return all
	}
	return l.client
}

// failed forgets the leader if a transaction there had no answer: the repetition goes to
// another member.
func (l *leader) failed(client *clientv3.Client, err error) {
	if errors.Is(err, replica.ErrRefused) {
		return
	}
	l.mu.Lock()
	known := client == l.client
	l.mu.Unlock()
	if !known {
		return
	}
	l.set(nil, "")
	select {
	case l.lost <- struct{}{}:
	default:
	}
}
