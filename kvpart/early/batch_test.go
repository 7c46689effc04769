package early_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/samya-db/samya/kvpart/early"
)

// TestSubmitAll: batches run like single requests, also with queues that are shorter than
// a batch: writes of a shard run in the order of their submission, and each once.
func TestSubmitAll(t *testing.T) {
	for _, mode := range early.Modes() {
		for _, queue := range []int{1, 3, 100} {
			t.Run(fmt.Sprintf("%v, queue %d", mode, queue), func(t *testing.T) {
				const shards, batches = 2, 60
				classes, mapping, err := early.Shards(shards, 2)
				if err != nil {
					t.Fatal(err)
				}
				s, err := early.New(early.Options{Mode: mode, Classes: classes, Mapping: mapping, Queue: queue})
				if err != nil {
					t.Fatal(err)
				}
				rnd := rand.New(rand.NewPCG(1, uint64(queue)))
				var got, want [shards][]int
				for n, number := 0, 0; n < batches; n++ {
					batch := make([]early.Request, rnd.IntN(20))
					for i := range batch {
						class, id := rnd.IntN(classes.Len()), number
						number++
						var on []int
						switch {
						case class == 2*shards+1:
							on = []int{0, 1}
						case class < 2*shards && class%2 == 1:
							on = []int{class / 2}
						}
						for _, shard := range on {
							want[shard] = append(want[shard], id)
						}
						batch[i] = early.Request{Class: class, Job: call(func() {
							for _, shard := range on {
								got[shard] = append(got[shard], id)
							}
						})}
					}
					s.SubmitAll(batch)
				}
				s.Close()
				for shard := range shards {
					if !slices.Equal(got[shard], want[shard]) {
						t.Errorf("shard %d: %d writes, want %d, in order", shard, len(got[shard]), len(want[shard]))
					}
				}
			})
		}
	}
}
