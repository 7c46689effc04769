package metis_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/samya-db/samya/internal/testfuzz"
	"github.com/samya-db/samya/kvpart/cut"
	"github.com/samya-db/samya/kvpart/cut/graphs"
	"github.com/samya-db/samya/kvpart/cut/metis"
)

// The examples of METIS's manual (version 5, figure 2): a graph of 7 vertices and 11
// edges, with ever more weights.
const (
	plainFile = `7 11
5 3 2
1 3 4
5 4 2 1
2 3 6 7
1 3 6
5 4 7
6 4
`
	edgesFile = `% (b) weights of edges
7 11 001
5 1 3 2 2 1
1 1 3 2 4 1
5 3 4 2 2 2 1 2
2 1 3 2 6 2 7 5
1 1 3 3 6 2
5 2 4 2 7 6
6 6 4 5
`
	bothFile = `7 11 11
4 5 1 3 2 2 1
2 1 1 3 2 4 1
% in between as well
5 5 3 4 2 2 2 1 2
3 2 1 3 2 6 2 7 5
1 1 1 3 3 6 2
6 5 2 4 2 7 6
2 6 6 4 5
`
	twoFile = "3 1 010 2\n1 0 2\n4 2 1\n\t7  3\r\n\n\n"
	allFile = "3 2 111 1\n9 5 2 1\n8 6 1 1 3 4\n0 0 2 4"
)

func TestRead(t *testing.T) {
	offsets := []int32{0, 3, 6, 10, 14, 17, 20, 22}
	neighbors := []int32{4, 2, 1, 0, 2, 3, 4, 3, 1, 0, 1, 2, 5, 6, 0, 2, 5, 4, 3, 6, 5, 3}
	weights := []int32{1, 2, 1, 1, 2, 1, 3, 2, 2, 2, 1, 2, 2, 5, 1, 3, 2, 2, 2, 6, 6, 5}
	ones := func(n int) []int64 { return slices.Repeat([]int64{1}, n) }
	for _, test := range []struct {
		name, file string
		want       cut.Graph
		sizes      []int64
	}{
		{"plain", plainFile, cut.Graph{Offsets: offsets, Neighbors: neighbors, EdgeWeights: slices.Repeat([]int32{1}, 22), Dims: 1, VertexWeights: ones(7)}, nil},
		{"weights of edges", edgesFile, cut.Graph{Offsets: offsets, Neighbors: neighbors, EdgeWeights: weights, Dims: 1, VertexWeights: ones(7)}, nil},
		{"both weights", bothFile, cut.Graph{Offsets: offsets, Neighbors: neighbors, EdgeWeights: weights, Dims: 1, VertexWeights: []int64{4, 2, 5, 3, 1, 6, 2}}, nil},
		{"two weights", twoFile, cut.Graph{Offsets: []int32{0, 1, 2, 2}, Neighbors: []int32{1, 0}, EdgeWeights: []int32{1, 1}, Dims: 2, VertexWeights: []int64{1, 0, 4, 2, 7, 3}}, nil},
		{"sizes and no newline", allFile, cut.Graph{Offsets: []int32{0, 1, 3, 4}, Neighbors: []int32{1, 0, 2, 1}, EdgeWeights: []int32{1, 1, 4, 4}, Dims: 1, VertexWeights: []int64{5, 6, 0}}, []int64{9, 8, 0}},
		{"nobody has a neighbour", "2 0\n\n\n", cut.Graph{Offsets: []int32{0, 0, 0}, Dims: 1, VertexWeights: ones(2)}, nil},
		{"nobody", "0 0", cut.Graph{Offsets: []int32{0}, Dims: 1}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, sizes, err := metis.Read(iotest.OneByteReader(strings.NewReader(test.file)))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(&test.want, g, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("graph (-want +got):\n%s", d)
			}
			if d := cmp.Diff(test.sizes, sizes); d != "" {
				t.Errorf("sizes (-want +got):\n%s", d)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	for _, test := range []struct{ name, file, says string }{
		{"empty", "", "line 1: 0 numbers in the header"},
		{"comments alone", "% a\n% b\n", "line 3: 0 numbers in the header"},
		{"no edges", "3\n", "line 1: 1 numbers in the header"},
		{"a long header", "3 0 0 1 1\n", "line 1: more than 4 numbers"},
		{"letters", "3 x\n", `line 1: 'x' in a number`},
		{"a fraction", "2 1 1\n2 1.5\n1 1.5\n", `line 2: '.' in a number`},
		{"a minus alone", "2 1\n2\n-\n", "line 3: a minus without a number"},
		{"vertices below zero", "-1 0\n", "line 1: -1 vertices, want 0 to 2147483646"},
		{"too many vertices", "2147483647 0\n", "line 1: 2147483647 vertices, want 0 to 2147483646"},
		{"too many edges", "2 1073741824\n", "line 1: 1073741824 edges, want 0 to 1073741823"},
		{"a number beyond 64 bits", "9223372036854775808 0\n", "line 1: a number above 9223372036854775807"},
		{"fmt", "2 0 2\n\n\n", "line 1: fmt 2, want"},
		{"fmt of four digits", "2 0 1000\n\n\n", "line 1: fmt 1000, want"},
		{"weights that fmt lacks", "2 0 1 1\n\n\n", "line 1: ncon 1, but fmt 1 has no vertex weights"},
		{"three weights", "2 0 10 3\n1 1 1\n1 1 1\n", "line 1: ncon 3 weights a vertex, want 1 or 2"},
		{"no size", "2 0 100\n1\n\n", "line 3: vertex 2: want a size"},
		{"no weight", "2 0 10 2\n1 1\n1\n", "line 3: vertex 2: want 2 weights"},
		{"a weight below zero", "2 0 10\n1\n-1\n", "line 3: vertex 2: want 1 weights of at least 0"},
		{"weights that overflow", "2 0 10\n9223372036854775807\n1\n", "line 3: vertex 2: all weights together are above"},
		{"few lines", "3 1\n2\n1\n", "line 4: the file ends after 2 vertices of 3"},
		{"many lines", "% c\n2 1\n2\n1\n\n% c\n1\n", "line 7: more lines than the header's 2 vertices"},
		{"few edges", "2 2\n2\n1\n", "2 neighbours in all, want 2 for each of the header's 2 edges"},
		{"many edges", "3 1\n2\n1 3\n2\n", "line 3: vertex 2: more neighbours than the header's 1 edges have ends"},
		{"neighbour 0", "2 1\n0\n1\n", "line 2: vertex 1: neighbour 0, want 1 to 2"},
		{"a neighbour out of range", "2 1\n3\n1\n", "line 2: vertex 1: neighbour 3, want 1 to 2"},
		{"a loop", "2 1\n2\n2\n", "line 3: vertex 2 is its own neighbour"},
		{"an edge without weight", "2 1 1\n2 1\n1\n", "line 3: vertex 2: the edge to 1 has no weight"},
		{"an edge that weighs nothing", "2 1 1\n2 0\n1 0\n", "line 2: vertex 1: the edge to 2 weighs 0"},
		{"an edge that weighs too much", "2 1 1\n2 2147483648\n1 1\n", "line 2: vertex 1: the edge to 2 weighs 2147483648"},
		{"a neighbour twice", "3 2\n2 2\n1\n1\n", "line 2: vertex 1 has its neighbour 2 twice"},
		{"one-way, forth", "% c\n3 2\n2 3\n1\n2\n", "line 3: vertex 1 has a neighbour 3, which has it not"},
		{"one-way, back", "3 2\n2\n1\n1 2\n", "line 2: vertex 1 has no neighbour 3, which has it"},
		{"two weights for one edge", "2 1 1\n2 4\n1 5\n", "line 2: the edge from 1 to 2 weighs 4, and 5 from there"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := metis.Read(strings.NewReader(test.file))
			if !malformed(err) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %q", err, test.says)
			}
		})
	}
}

// malformed reports whether an error is the fault of a file.
func malformed(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "bad file: line ")
}

func TestReadTellsWhatTheReaderSays(t *testing.T) {
	for at := range len(bothFile) {
		_, _, err := metis.Read(io.MultiReader(strings.NewReader(bothFile[:at]), iotest.ErrReader(io.ErrClosedPipe)))
		if !errors.Is(err, io.ErrClosedPipe) || malformed(err) {
			t.Fatalf("after %d bytes: %v", at, err)
		}
	}
	_, err := metis.ReadParts(io.MultiReader(strings.NewReader("0\n1"), iotest.ErrReader(io.ErrClosedPipe)), 2)
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Fatalf("parts: %v", err)
	}
}

// again writes g and reads it.
func again(t rapid.TB, g *cut.Graph, sizes []int64) {
	t.Helper()
	var file bytes.Buffer
	if err := metis.Write(&file, g, sizes); err != nil {
		t.Fatal(err)
	}
	said := file.String()
	got, gotSizes, err := metis.Read(&file)
	if err != nil {
		t.Fatalf("%v:\n%s", err, said)
	}
	if d := cmp.Diff(g, got, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("graph (-written +read):\n%s%s", d, said)
	}
	if d := cmp.Diff(sizes, gotSizes, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("sizes (-written +read):\n%s%s", d, said)
	}
}

func TestWrite(t *testing.T) {
	for _, f := range graphs.Families() {
		g, err := f.Draw(300, 1)
		if err != nil {
			t.Fatal(err)
		}
		again(t, g, nil)
	}
	for _, file := range []string{plainFile, edgesFile, bothFile, twoFile, allFile} {
		g, sizes, err := metis.Read(strings.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		again(t, g, sizes)
		if err := metis.Write(errWriter{}, g, sizes); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("a writer that fails: %v", err)
		}
	}
	g := &cut.Graph{Offsets: []int32{0, 0}, Dims: 1, VertexWeights: []int64{1}}
	if err := metis.Write(io.Discard, g, []int64{1, 2}); err == nil || !strings.HasPrefix(err.Error(), "malformed graph: ") {
		t.Errorf("too many sizes: %v", err)
	}
}

// errWriter fails.
type errWriter struct{}

func (errWriter) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.Int32Range(-1, cut.MaxParts-1)).Draw(t, "parts")
		var file bytes.Buffer
		if err := metis.WriteParts(&file, parts); err != nil {
			t.Fatal(err)
		}
		got, err := metis.ReadParts(&file, len(parts))
		if err != nil || !slices.Equal(got, parts) {
			t.Fatalf("wrote %v, read %v: %v", parts, got, err)
		}
	})
	if err := metis.WriteParts(errWriter{}, []int32{1}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a writer that fails: %v", err)
	}
}

func TestReadPartsRefuses(t *testing.T) {
	for _, test := range []struct{ name, file, says string }{
		{"few", "0\n", "1 parts, want one for each of 2 vertices"},
		{"many", "0\n1\n1\n", "line 3: more parts than 2 vertices"},
		{"two on a line", "0 1\n", "line 1: more numbers than belong there"},
		{"an empty line", "0\n\n1\n", "line 2: no part"},
		{"below -1", "0\n-2\n", "line 2: part -2, want 0 to 4095"},
		{"too large", "0\n4096\n", "line 2: part 4096, want 0 to 4095"},
		{"letters", "0\none\n", "line 2: 'o' in a number"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := metis.ReadParts(strings.NewReader(test.file), 2)
			if !malformed(err) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %q", err, test.says)
			}
		})
	}
}

// FuzzRead: a graph as read is well-formed, and reads the same once written.
func FuzzRead(tf *testing.F) {
	f := testfuzz.On(tf)
	for _, file := range []string{plainFile, edgesFile, bothFile, twoFile, allFile, "0 0", "2147483646 1073741823 111 2\n1 1 1 2 3"} {
		f.Add([]byte(file))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		g, sizes, err := metis.Read(bytes.NewReader(file))
		if err != nil {
			if !malformed(err) {
				t.Fatal(err)
			}
			return
		}
		n := len(g.Offsets) - 1
		weights := map[[2]int32]int32{}
		for v := range int32(n) {
			for i := g.Offsets[v]; i < g.Offsets[v+1]; i++ {
				if g.Neighbors[i] == v || g.EdgeWeights[i] < 1 {
					t.Fatalf("edge from %d to %d weighs %d", v, g.Neighbors[i], g.EdgeWeights[i])
				}
				weights[[2]int32{v, g.Neighbors[i]}] = g.EdgeWeights[i]
			}
		}
		if len(weights) != len(g.Neighbors) {
			t.Fatal("an edge stands twice")
		}
		for ends, w := range weights {
			if weights[[2]int32{ends[1], ends[0]}] != w {
				t.Fatalf("edge %v is not symmetric", ends)
			}
		}
		var sums [2]int64
		for i, w := range g.VertexWeights {
			if w < 0 || w > math.MaxInt64-sums[i%g.Dims] {
				t.Fatalf("weight %d: %d", i, w)
			}
			sums[i%g.Dims] += w
		}
		again(t, g, sizes)
	})
}

// FuzzReadParts: parts that were read are equal after a write and a read.
func FuzzReadParts(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add([]byte("0\n1\n-1\n4095"), 4)
	f.Fuzz(func(t *testing.T, file []byte, vertices int) {
		parts, err := metis.ReadParts(bytes.NewReader(file), vertices)
		if err != nil {
			if !malformed(err) {
				t.Fatal(err)
			}
			return
		}
		var written bytes.Buffer
		if err := metis.WriteParts(&written, parts); err != nil {
			t.Fatal(err)
		}
		got, err := metis.ReadParts(&written, vertices)
		if err != nil || !slices.Equal(got, parts) || len(parts) != vertices {
			t.Fatalf("read %v, then %v: %v", parts, got, err)
		}
	})
}
