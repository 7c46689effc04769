package metis

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/samya-db/samya/kvpart/cut"
)

// Write writes g in the format of METIS. sizes, if not nil, has a size a vertex;
// another number of sizes fails. Weights that are all 1 are left out.
func Write(w io.Writer, g *cut.Graph, sizes []int64) error {
	n := len(g.Offsets) - 1
	if sizes != nil && len(sizes) != n {
		return fmt.Errorf("malformed graph: %d sizes for %d vertices", len(sizes), n)
	}
	weighted, edgeWeighted := g.Dims > 1, false
	for _, w := range g.VertexWeights {
		weighted = weighted || w != 1
	}
	for _, w := range g.EdgeWeights {
		edgeWeighted = edgeWeighted || w != 1
	}
	digit := map[bool]byte{false: '0', true: '1'}
	out := bufio.NewWriterSize(w, 1<<16)
	line := fmt.Appendf(nil, "%d %d", n, len(g.Neighbors)/2)
	if sizes != nil || weighted || edgeWeighted {
		line = append(line, ' ', digit[sizes != nil], digit[weighted], digit[edgeWeighted])
	}
	if weighted && g.Dims > 1 {
		line = fmt.Appendf(line, " %d", g.Dims)
	}
	line = append(line, '\n')
	for v := range n {
		if _, err := out.Write(line); err != nil {
			return fmt.Errorf("write a graph: %w", err)
		}
		line = line[:0]
		if sizes != nil {
			line = append(strconv.AppendInt(line, sizes[v], 10), ' ')
		}
		if weighted {
			for _, w := range g.VertexWeights[v*g.Dims : (v+1)*g.Dims] {
				line = append(strconv.AppendInt(line, w, 10), ' ')
			}
		}
		for i := g.Offsets[v]; i < g.Offsets[v+1]; i++ {
			line = append(strconv.AppendInt(line, int64(g.Neighbors[i])+1, 10), ' ')
			if edgeWeighted {
				line = append(strconv.AppendInt(line, int64(g.EdgeWeights[i]), 10), ' ')
			}
		}
		if last := len(line) - 1; last >= 0 {
			line = line[:last]
		}
		line = append(line, '\n')
	}
	if _, err := out.Write(line); err != nil {
		return fmt.Errorf("write a graph: %w", err)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write a graph: %w", err)
	}
	return nil
}
