package samya

import (
	"fmt"

	"github.com/samya-db/samya/internal/wan"
	"github.com/samya-db/samya/lab/rivals"
	"github.com/samya-db/samya/lab/rivals/multipaxsys"
	"github.com/samya-db/samya/lab/virtual"
)

// placed is a system that needs round trips beyond the paper's Table 5.
type placed interface{ Network() *wan.Matrix }

// newRival makes a rival of samya for a run.
func newRival(name string) (virtual.System, error) {
	switch name {
	case oneRound:
		return multipaxsys.New(multipaxsys.Options{Mode: multipaxsys.One})
	case oneRoundCentral:
		return multipaxsys.New(multipaxsys.Options{Mode: multipaxsys.One, Leader: multipaxsys.Central})
	case batched:
		return multipaxsys.New(multipaxsys.Options{Mode: multipaxsys.Batched})
	case escrowHalf:
		return rivals.NewEscrow(rivals.Half)
	case escrowExact:
		return rivals.NewEscrow(rivals.Exact)
	case escrowAhead:
		return rivals.NewAhead(), nil
	case centralPool:
		return rivals.NewPool(), nil
	case approximate:
		return rivals.NewApproximate(), nil
	case unlimited:
		return rivals.NoConstraint(), nil
	case noRedistributes:
		return rivals.NoRedistribution(), nil
	case oracle:
		return rivals.NewOracle(), nil
	}
	return nil, fmt.Errorf("no system %q", name)
}
