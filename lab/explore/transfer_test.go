package explore

import (
	"maps"
	"testing"

	"github.com/samya-db/samya/avantan/transfer"
	"github.com/samya-db/samya/internal/race"
)

// searchedTransfer searches to closure and returns all durable states.
func searchedTransfer(t *testing.T, b Bounds) map[[Sites]string]bool {
	t.Helper()
	v := NewTransfer(b)
	s := &search{Options: Options{Bounds: b}, variant: v, store: newStore(v)}
	if err := s.run(t.Context()); err != nil || !s.closed || s.violations != nil {
		t.Fatalf("err %v, closed %v, violations %v", err, s.closed, s.violations)
	}
	t.Logf("%+v: %d states", b, len(s.seen.states))
	return s.found(func(nodes [Sites]Node) (k [Sites]string) {
		for i, n := range nodes {
			n := n.Clone().(*transferNode)
			n.machine, n.live = transfer.New(v.cfg[i], n.disk, n.state.Clone()), n.disk
			k[i] = string(n.Key(nil))
		}
		return k
	})
}

func TestTransferReductionsLoseNothing(t *testing.T) {
	race.OneGoroutine(t)
	for _, b := range []Bounds{
		{Instances: 1, Leaders: 2, Ballots: 1, Crashes: 1, Acquires: 1, Tokens: 2},
		{Instances: 1, Leaders: 1, Ballots: 2, Crashes: 1, Tokens: 2, Losses: 1},
	} {
		got := searchedTransfer(t, b)
		b.Plain = true
		want := searchedTransfer(t, b)
		if !maps.Equal(got, want) {
			t.Errorf("%+v: %d durable states instead of %d", b, len(got), len(want))
		}
	}
}
