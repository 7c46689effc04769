package peer

import (
	"context"
	"errors"
	"fmt"

	"github.com/samya-db/samya/site/core"
)

// Errors that end a link or a stream at once, and not when the other end falls silent.
var (
	// errMoved: the member listens at another address.
	errMoved = errors.New("the member listens elsewhere now")
	// errOver: another node of the member has taken over from the node at the other end.
	errOver = errors.New("another node of the site has taken over")
)

// Readdress has the links follow the members to other addresses at once. A link to an old
// address ends even if its connection hangs there, as with a machine that is cut off. The
// caller calls Readdress whenever Address may return something else. Links to members whose
// address stays are not touched.
func (l *Links) Readdress() {
	for _, k := range *l.links.Load() {
		k.readdress()
	}
}

// readdress ends the attempt or the link if the member listens elsewhere now.
func (k *link) readdress() {
	k.aim.Lock()
	defer k.aim.Unlock()
	if now := k.owner.cfg.Address(k.to); now == "" || now == k.address {
		return
	}
	k.redial(errMoved)
}

// redial has the link connect anew at once. The caller holds k.aim.
func (k *link) redial(why error) {
	if k.cancel != nil {
		k.cancel(why)
	}
	// The pause before the next attempt, if it has begun, is over.
	k.hear()
}

// begin notes the begin of an attempt, which cancel ends, and returns the address to call.
func (k *link) begin(cancel context.CancelCauseFunc) (address string) {
	k.aim.Lock()
	defer k.aim.Unlock()
	k.address, k.reached, k.cancel = k.owner.cfg.Address(k.to), 0, cancel
	return k.address
}

// end notes the end of an attempt and of its link.
func (k *link) end() {
	k.aim.Lock()
	defer k.aim.Unlock()
	k.reached, k.cancel = 0, nil
}

// reach notes the term of the node at the other end of the link. It returns an error if
// another node has taken over from that node.
func (k *link) reach(term int64) error {
	k.aim.Lock()
	defer k.aim.Unlock()
	if err := k.rise(term); err != nil {
		return err
	}
	k.reached = term
	return nil
}

// follow notes the term of a node that brings up its own link. It returns a channel that is
// closed once another node has taken over from that node, or an error if one already has.
// The messages of the earlier node are like messages that come late: they do no harm, but
// its versions would replace the versions of the later node.
func (l *Links) follow(from core.SiteID, term int64) (over <-chan struct{}, err error) {
	k := l.link(from)
	if k == nil || term == 0 {
		return nil, nil
	}
	k.aim.Lock()
	defer k.aim.Unlock()
	if err := k.rise(term); err != nil {
		return nil, err
	}
	return k.over, nil
}

// rise notes the term in a greeting; 0 is the term of a site of a single process, and tells nothing.
// A term above all earlier ones ends the links with earlier nodes, in both directions. The
// caller holds k.aim.
func (k *link) rise(term int64) error {
	switch {
	case term == 0 || term == k.term:
	case term < k.term:
		return fmt.Errorf("a node of site %s greets with term %d, term %d is known: %w", k.to, term, k.term, errOver)
	default:
		k.term = term
		close(k.over)
		k.over = make(chan struct{})
		if k.reached != 0 {
			k.redial(errOver)
		}
	}
	return nil
}
