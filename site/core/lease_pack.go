package core

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/stored"
)

// packedLease is a lease on its way to an heir.
type packedLease struct {
	ID     string `json:"id"`
	Holder string `json:"holder,omitempty"`
	// TTL is the time to live, Remaining the time left when it was packed; milliseconds.
	TTL       Tick `json:"ttl"`
	Remaining Tick `json:"remaining"`
	Share     bool `json:"share,omitempty"`
	// Tokens are the tokens of a lease that are no part of the net, see inNet.
	Tokens Tokens `json:"tokens,omitempty"`
}

// inNet is the number of a lease's tokens that are out for sure. Tokens of a rate quota come
// back by the clock, unless they are held; then the lease has its tokens, and the net has
// them no more.
func inNet(l *lease) Tokens {
	if rateOf(l.entity) != nil && !l.Share {
		return 0
	}
	return l.Tokens
}

func (c *leasing) packLease(l *lease) []byte {
	p := packedLease{ID: l.ID, Holder: l.Holder, TTL: l.TTL, Remaining: l.until - min(l.until, c.now.Tick), Share: l.Share, Tokens: l.Tokens - inNet(l)}
	b, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("core: plain data does not marshal: %v", err))
	}
	return b
}

func unpackLease(data []byte) (packedLease, error) {
	var p packedLease
	if err := json.Unmarshal(data, &p); err != nil {
		return packedLease{}, fmt.Errorf("decoding a lease of another site: %w", err)
	}
	if p.ID == "" {
		return packedLease{}, errors.New("decoding a lease of another site: it has no id")
	}
	if p.Tokens < 0 {
		return packedLease{}, fmt.Errorf("decoding a lease of another site: %d tokens, at least 0", p.Tokens)
	}
	return p, nil
}

// inheritLease makes a lease of another site a lease of this site. Its holder may learn
// late where it is: the time on its way does not count.
func (c *leasing) inheritLease(e *entity, p packedLease, tokens Tokens) {
	key := attempt.KeyOf(p.ID)
	if l, ok := c.leases.byKey[key]; ok && l.entity == e {
		if p.Share && !l.Share {
			c.hold(e, l.Tokens)
			l.Share = true
		}
		if l.Share {
			c.hold(e, tokens)
		}
		l.Tokens += tokens
		l.Window, l.Above = foreignMark(e), nil
		c.storeLease(l)
		return
	}
	c.leases.number++
	l := &lease{
		Lease: stored.Lease{
			Number: c.leases.number, ID: p.ID, Entity: e.name, Generation: e.generation, Tokens: tokens, Holder: p.Holder,
			Window: foreignMark(e), Share: p.Share && rateOf(e) != nil,
		},
		key: key, entity: e, heapAt: -1,
	}
	if c.leases.add(l); l.Share {
		c.hold(e, tokens)
	}
	c.prolong(l, p.TTL)
	l.until = c.now.Tick + min(p.Remaining, p.TTL)
	l.Expires = c.own() + int64(min(p.Remaining, p.TTL))
	c.leases.ends.add(l)
	c.storeLease(l)
}
