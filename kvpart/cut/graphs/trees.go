package graphs

import (
	"math/rand/v2"

	"github.com/samya-db/samya/kvpart/cut"
)

// The shape of an organisation's tree.
const (
	teamsOfOrg   = 10
	leavesOfTeam = 10
	leavesOfOrg  = teamsOfOrg * leavesOfTeam
	sizeOfOrg    = 1 + teamsOfOrg + leavesOfOrg
)

// forest is a number of organisations' trees. Organisation o stands at o*sizeOfOrg, its
// teams behind it, its leaves behind the teams.
type forest struct {
	orgs int
	// cross is the percentage of requests that touch two organisations.
	cross int
	// root adds a root, behind all trees, that all requests touch.
	root bool
	// skew is the exponent of Zipf's law by which leaves are drawn; 0 draws uniformly.
	skew float64
}

// path returns a leaf, given its number among all leaves, its team and its organisation.
func path(leaf int) []int32 {
	org, at := leaf/leavesOfOrg*sizeOfOrg, leaf%leavesOfOrg
	return []int32{int32(org + 1 + teamsOfOrg + at), int32(org + 1 + at/leavesOfTeam), int32(org)}
}

func (f forest) draw(r *rand.Rand) *cut.Graph {
	vertices := f.orgs * sizeOfOrg
	root := int32(vertices)
	if f.root {
		vertices++
	}
	b := newBuilder(vertices, 0)
	leaves := f.orgs * leavesOfOrg
	pick := func() int { return r.IntN(leaves) }
	if f.skew > 0 {
		z, scattered := newZipf(leaves, f.skew), r.Perm(leaves)
		pick = func() int { return scattered[z.draw(r)] }
	}
	for range 10 * leaves {
		leaf := pick()
		keys := path(leaf)
		if f.orgs > 1 && r.IntN(100) < f.cross {
			other := pick()
			for other/leavesOfOrg == leaf/leavesOfOrg {
				other = r.IntN(leaves)
			}
			keys = append(keys, path(other)...)
		}
		if f.root {
			keys = append(keys, root)
		}
		b.request(keys...)
	}
	return b.graph()
}

func orgs(vertices int) int { return max(1, vertices/sizeOfOrg) }

func tree(vertices int, r *rand.Rand) *cut.Graph {
	return forest{orgs: orgs(vertices)}.draw(r)
}

func treeCross(vertices int, r *rand.Rand) *cut.Graph {
	return forest{orgs: orgs(vertices), cross: 5}.draw(r)
}

func treeRoot(vertices int, r *rand.Rand) *cut.Graph {
	return forest{orgs: orgs(vertices), cross: 5, root: true}.draw(r)
}

func treeSkewed(vertices int, r *rand.Rand) *cut.Graph {
	return forest{orgs: orgs(vertices), skew: .8}.draw(r)
}
