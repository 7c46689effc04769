package core_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// TestACreateNeverMeetsItself creates each entity under one id, again and again, at any
// sites, while sites are cut off and start again. No attempt is answered that the entity
// exists already, or that the id was of another request.
func TestACreateNeverMeetsItself(t *testing.T) {
	attempts, done := 0, 0
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 21))
		r := newRig(t, []int{3, 5}[seed%2], func(c *core.Config) {
			c.Protocol = []string{"majority", "auto"}[seed/2%2]
		})
		type attempt struct {
			name string
			call input.Call
		}
		var asked []attempt
		for range 60 {
			for range 1 + rnd.IntN(3) {
				name := fmt.Sprint("e", rnd.IntN(6))
				ch := input.Change{Kind: input.CreateEntity, Name: name, Limit: 9, RequestID: "create " + name, Wait: core.Tick(1 + rnd.IntN(1500))}
				asked = append(asked, attempt{name, r.changeAsync(r.names[rnd.IntN(len(r.names))], ch)})
			}
			switch site := r.names[rnd.IntN(len(r.names))]; rnd.IntN(8) {
			case 0:
				r.cut[site] = true
			case 1, 2:
				delete(r.cut, site)
			case 3:
				r.restart(site)
			}
			r.advance(core.Tick(rnd.IntN(400)))
		}
		clear(r.cut)
		r.advance(30_000)
		for _, a := range asked {
			got, answered := r.answers[a.call]
			if !answered {
				continue // its site was started again
			}
			attempts++
			switch got.Code {
			case answer.OK:
				done++
			case answer.NoQuorum, answer.Unknown, answer.Overloaded, answer.Unvouched:
			default:
				t.Errorf("seed %d: an attempt to create %s is answered %v", seed, a.name, got.Code)
			}
		}
	}
	t.Logf("%d attempts, %d answered that it was done", attempts, done)
}
