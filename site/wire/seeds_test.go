package wire_test

import (
	"reflect"
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/star"
	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/wire"
)

// TestSeedsComeBackWhole: the seeds come back unchanged, of every kind. The seeds hold
// every field of the wire.
func TestSeedsComeBackWhole(t *testing.T) {
	for _, e := range seeds() {
		e.Message.From, e.Message.To = "b", "a"
		switch {
		case e.Star != nil:
			e.Star.From, e.Star.To = "b", "a"
		case e.Transfer != nil:
			e.Transfer.From, e.Transfer.To = "b", "a"
		case e.Handoff != nil:
			e.Handoff.From, e.Handoff.To = "b", "a"
		case e.Vouch != nil:
			e.Vouch.From, e.Vouch.To = "b", "a"
		case e.Leave != nil:
			e.Leave.From, e.Leave.To = "b", "a"
		case e.Gossip != nil:
		case e.Claims != nil:
			e.Claims.From, e.Claims.To = "b", "a"
		case e.Audit != nil:
			e.Audit.From, e.Audit.To = "b", "a"
		}
		if e.Message.Kind == 0 {
			e.Message = avantan.Message{}
		}
		got, err := wire.Decode(wire.Encode(&e), "b", "a")
		if err != nil || !reflect.DeepEqual(got, e) {
			t.Errorf("%v: %+v, want %+v", err, got, e)
		}
	}
}

// TestForeignClaims: keys of a wrong length and unknown verdicts are refused.
func TestForeignClaims(t *testing.T) {
	key := make([]byte, len(attempt.Key{}))
	long := append(append([]byte{}, key...), 1)
	ask := func(key, lease []byte) *peerv1.Claims {
		return &peerv1.Claims{Asks: []*peerv1.ClaimAsk{{Kind: peerv1.ClaimKind_CLAIM_KIND_RETURN_LEASE, Key: key, Lease: lease}}}
	}
	for what, c := range map[string]struct {
		claims *peerv1.Claims
		good   bool
	}{
		"whole":              {ask(key, key), true},
		"a short key":        {ask(key[1:], key), false},
		"a long key":         {ask(long, key), false},
		"a short lease":      {ask(key, key[1:]), false},
		"a long lease":       {ask(key, long), false},
		"an unknown verdict": {&peerv1.Claims{Answers: []*peerv1.ClaimAnswer{{Number: 1, Verdict: 99}}}, false},
	} {
		if _, err := wire.Decode(&peerv1.ProtocolMessage{Claims: c.claims}, "b", "a"); (err == nil) != c.good {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// pressOf is the press that a number on the wire stands for.
func pressOf(n uint32) avantan.Press {
	if n > uint32(avantan.PressNone) {
		return avantan.PressHold
	}
	return avantan.Press(n)
}

// TestPressIsBounded: a press unknown to this build is the strongest press that it knows,
// of either protocol.
func TestPressIsBounded(t *testing.T) {
	for press := range uint32(300) {
		m, err := wire.Decode(&peerv1.ProtocolMessage{Kind: peerv1.MessageKind_MESSAGE_KIND_ELECTION, Press: press}, "b", "a")
		if want := pressOf(press); err != nil || m.Message.Press != want {
			t.Errorf("%d: %v, %v", press, m.Message.Press, err)
		}
		s, err := wire.Decode(&peerv1.ProtocolMessage{Star: &peerv1.StarMessage{Kind: peerv1.StarKind_STAR_KIND_ELECTION, Press: press}}, "b", "a")
		if want := avantan.Press(min(press, uint32(avantan.PressAll))); err != nil || s.Star.Kind != star.Election || s.Star.Press != want {
			t.Errorf("star %d: %v, %v", press, s.Star.Press, err)
		}
	}
}
