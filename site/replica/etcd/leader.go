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
	ended    chan struct{}
}

// lookSoon is how often the leader is looked for while it is not known, lookAgain how often
// while it is known.
const (
	lookSoon  = 200 * time.Millisecond
	lookAgain = 5 * time.Second
)

// follow looks for the leader until the client's end.
func (l *leader) follow(c *Client) {
	l.ended = make(chan struct{})
	go func() {
		defer close(l.ended)
		tick := time.NewTicker(lookSoon)
		defer tick.Stop()
		var looked time.Time
		for {
			if l.is("") || time.Since(looked) >= lookAgain {
				l.look(c)
				looked = time.Now()
			}
			select {
			case <-tick.C:
			case <-c.ctx.Done():
				l.set(nil, "")
				return
			}
		}
	}()
}

// end waits until the leader's connection is closed. The client's context has ended.
func (l *leader) end() { <-l.ended }

// is reports whether the leader is the member at an endpoint; "" stands for no known leader.
func (l *leader) is(endpoint string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.endpoint == endpoint
}

// look asks the members who leads, and connects to that member.
func (l *leader) look(c *Client) {
	for _, e := range c.cfg.Endpoints {
		ctx, cancel := context.WithTimeout(c.ctx, c.cfg.Timeout)
		st, err := c.client.Status(ctx, e)
		cancel()
		if err != nil || st.Leader == 0 || st.Leader != st.Header.GetMemberId() {
			continue
		}
		if l.is(e) {
			return
		}
		if client, err := c.connect(e); err == nil {
			l.set(client, e)
		}
		return
	}
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
	led := client == l.client
	l.mu.Unlock()
	if led {
		l.set(nil, "")
	}
}
