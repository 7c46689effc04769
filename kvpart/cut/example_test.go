package cut_test

import (
	"context"
	"fmt"

	"github.com/samya-db/samya/kvpart/cut"
)

// Two triangles, joined by a light edge, are cut there.
func ExamplePartition() {
	g := &cut.Graph{
		// Vertices 0, 1, 2 and 3, 4, 5; an edge joins 2 and 3.
		Offsets:       []int32{0, 2, 4, 7, 10, 12, 14},
		Neighbors:     []int32{1, 2, 0, 2, 0, 1, 3, 2, 4, 5, 3, 5, 3, 4},
		EdgeWeights:   []int32{9, 9, 9, 9, 9, 9, 1, 1, 9, 9, 9, 9, 9, 9},
		Dims:          1,
		VertexWeights: []int64{1, 1, 1, 1, 1, 1},
	}
	r, err := cut.Partition(context.Background(), g, cut.Options{Parts: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	p := r.Parts
	fmt.Println(p[0] == p[1] && p[1] == p[2], p[3] == p[4] && p[4] == p[5], p[2] != p[3], r.Cut, r.Balance)
	// Output: true true true 1 [1]
}
