package libra_test

import (
	"fmt"

	"github.com/samya-db/samya/kvpart/libra"
)

// Example plans a round of two nodes: the first is busy with its processor, the second with its disk.

func Example() {
	units := []libra.Unit{
		{Node: 0, Load: libra.Load{600, 20}},
		{Node: 0, Load: libra.Load{300, 40}},
		{Node: 1, Load: libra.Load{90, 400}},
		{Node: 1, Load: libra.Load{10, 500}},
	}
	plan, err := libra.NewPlan(libra.Options{Tolerance: .2}, 2, units)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("excess %.2f\n", plan.Excess())
	for {
		switch a := plan.Step(); a.Kind {
		case libra.Migrate:
			fmt.Printf("move unit %d from node %d to %d, for its %v load\n", a.Unit, a.From, a.To, a.Dimension)
		case libra.Split:
			fmt.Printf("split unit %d into %d parts of %.1f %% of its %v load\n", a.Unit, a.Parts, 100*a.Share, a.Dimension)
		case libra.Done, libra.Wait, libra.Stuck:
			fmt.Printf("%v: excess %.2f\n", a.Kind, plan.Excess())
			return
		}
	}
	// Output:
	// excess 0.88
	// move unit 3 from node 1 to 0, for its disk load
	// move unit 1 from node 0 to 1, for its cpu load
	// split unit 0 into 11 parts of 6.7 % of its cpu load
	// wait: excess 0.22
}
