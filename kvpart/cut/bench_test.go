package cut_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/samya-db/samya/kvpart/cut"
	"github.com/samya-db/samya/kvpart/cut/graphs"
)

func draw(b *testing.B, family string) *cut.Graph {
	b.Helper()
	f, err := graphs.ByName(family)
	if err != nil {
		b.Fatal(err)
	}
	g, err := f.Draw(f.Vertices, 1)
	if err != nil {
		b.Fatal(err)
	}
	return g
}

// BenchmarkPartition cuts graphs from the start. Processor time in ms, on a shared
// machine, and in brackets with gpmetis 5.1.0 -seed=1: ring into 16 parts 80 (34),
// communities 340 (200), tree-cross 65 (42), power-law 1220 (730), grid 70 (40), edgeless
// 40 (refused).
func BenchmarkPartition(b *testing.B) {
	for _, family := range []string{"ring", "communities", "tree-cross", "power-law", "grid", "edgeless"} {
		g := draw(b, family)
		for _, k := range []int{2, 16} {
			b.Run(fmt.Sprintf("%s/%d", family, k), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := cut.Partition(context.Background(), g, cut.Options{Parts: k, Seed: 1}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkWarm cuts graphs again that have not changed: ring 25 ms of processor
// time, communities 200, edgeless 25.
func BenchmarkWarm(b *testing.B) {
	for _, family := range []string{"ring", "communities", "edgeless"} {
		g := draw(b, family)
		b.Run(family, func(b *testing.B) {
			cold, err := cut.Partition(context.Background(), g, cut.Options{Parts: 8, Seed: 1})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := cut.Partition(context.Background(), g, cut.Options{Parts: 8, Seed: 1, Start: cold.Parts}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
