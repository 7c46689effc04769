package core_test

import (
	"testing"

	"github.com/samya-db/samya/internal/session"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/message"
)

// ofSession is the id of a session's request.
func ofSession(sequence uint64) string {
	return string(session.Append([]byte(session.ID{1, 2, 3}.Text()), sequence))
}

// TestAcknowledged: a request that its client has acknowledged leaves the memory, and a late
// duplicate does nothing, also after a restart. Requests without acknowledgement get the first
// answer again.
func TestAcknowledged(t *testing.T) {
	for name, tokens := range map[string]core.Tokens{"acquire": 10, "release": -10} {
		t.Run(name, func(t *testing.T) {
			r := claimRig(t, nil)
			first := r.tries(1)
			for n := range uint64(3) {
				r.wantCode(r.try("a", tokens, ofSession(n), first), answer.OK)
			}
			acks := first
			acks.Acked = 2
			r.wantCode(r.try("a", tokens, ofSession(3), acks), answer.OK)
			_, _, net := r.books("e")
			for range 2 {
				for n, want := range []answer.Code{answer.Superseded, answer.Superseded, answer.OK, answer.OK} {
					r.wantCode(r.try("a", tokens, ofSession(uint64(n)), first), want)
				}
				if _, _, now := r.books("e"); now != net {
					t.Errorf("%d tokens are out, before %d", now, net)
				}
				r.restart("a")
			}
		})
	}
}

// TestAskedAboutAnAcknowledged: a site that another asks about an acknowledged request cannot tell
// what became of it, and says so: the other counts no release again.
func TestAskedAboutAnAcknowledged(t *testing.T) {
	for name, tokens := range map[string]core.Tokens{"acquire": 10, "release": -10} {
		t.Run(name, func(t *testing.T) {
			r := claimRig(t, nil)
			ask := r.asked(tokens, ofSession(0))
			r.wantCode(r.try("a", tokens, ofSession(0), r.tries(1)), answer.OK)
			acks := r.tries(1)
			acks.Acked = 1
			r.wantCode(r.try("a", tokens, ofSession(1), acks), answer.OK)
			for range 2 {
				if got := r.ask("b", "a", ask); len(got) != 1 || got[0].Verdict != message.Forgotten {
					t.Errorf("the verdict is %v, want %v", got, message.Forgotten)
				}
			}
		})
	}
}
