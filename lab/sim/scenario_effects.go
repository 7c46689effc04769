package sim

import "fmt"

// effectsFor is how long after a request each effect of a site is a point to crash at,
// once. restartsAfter is how long the site stays down.
const (
	effectsFor    = 2 * second
	restartsAfter = second
)

func everyEffectScenario() Scenario {
	const all = "wherever a site crashes, and whichever, nothing stays set aside and every token can be acquired"
	return Scenario{
		Name:  "crash-at-every-effect",
		About: "while tokens are redistributed, each site crashes in turn before and after each transaction, message and answer of it",
		Seeds: 1, play: playEveryEffect,
		expected: map[string]string{"majority": all, "star": all, "auto": all},
	}
}

// playEveryEffect plays the same redistribution again and again, with a single crash at
// each effect of each site.
func playEveryEffect(st *stage) {
	points := int64(0)
	for site := range st.nodes {
		for k := 1; ; k++ {
			again := newStage(st.mode, st.o.Strategy, st.o.Seed)
			burnt := again.crashAt(site, k)
			for _, err := range again.problems {
				st.wrong("%s crashes at its effect %d: %w", st.names[site], k, err)
			}
			if v := again.violation; v != nil {
				st.wrong("%s crashes at its effect %d: %s: %w", st.names[site], k, v.Invariant, v.Err)
			}
			if !burnt || len(st.problems) > 0 {
				break
			}
			points++
		}
	}
	if points < 20 {
		st.wrong("only %d effects", points)
	}
	st.told("crashes, one a run", points)
}

// crashAt has a site crash at its k-th effect from now on, and reports whether
// it has so many.
func (st *stage) crashAt(site, k int) bool {
	n := st.nodes[site]
	n.fuse = k
	st.acquire(0, short, 10*second)
	st.run(effectsFor)
	burnt := !n.up
	n.fuse = 0
	st.run(restartsAfter)
	st.mend()
	st.allAcquired()
	return burnt
}

// millisText tells a bound for people.
func millisText(n blocks) string {
	if n < 1000 {
		return fmt.Sprintf("%d ms", n)
	}
	return fmt.Sprintf("%d,%03d ms", n/1000, n%1000)
}
