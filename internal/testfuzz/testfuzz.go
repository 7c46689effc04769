// Package testfuzz runs fuzz targets on mutations of their seeds in every run of the
// tests, not on the seeds alone. A target begins with On:
//
//	func FuzzDecode(tf *testing.F) {
//		f := testfuzz.On(tf)
//		f.Add([]byte("a seed"))
//		f.Fuzz(func(t *testing.T, b []byte) { … })
//	}
//
// The package follows no coverage and keeps no corpus. `go test -fuzz` does both on the
// same targets, and turns the mutations of this package off.
package testfuzz

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/race"
)

// inputs is the default of F.Inputs.
const inputs = 2000

// F is a testing.F that also runs mutations of its seeds.
type F struct {
	*testing.F
	// Inputs is the number of mutations, 2,000 by default. Under the race detector a
	// target runs a tenth of them, as each takes ten times as long.
	Inputs int
	seeds  [][]any
}

// On returns the F of a fuzz target.
func On(f *testing.F) *F {
	f.Helper()
	return &F{F: f, Inputs: inputs}
}

// Add adds a seed, as testing.F does.
func (f *F) Add(args ...any) {
	f.Helper()
	f.seeds = append(f.seeds, args)
	f.F.Add(args...)
}

// Fuzz runs a function as testing.F does, and after each seed on a part of the
// mutations, in the same test. An input that fails is logged as a file of a corpus. The
// function may not call t.Parallel or t.Skip.
func (f *F) Fuzz(ff any) {
	f.Helper()
	if fuzzing() || len(f.seeds) == 0 {
		f.F.Fuzz(ff)
		return
	}
	n := f.Inputs
	if race.Enabled {
		n /= 10
	}
	each := (n + len(f.seeds) - 1) / len(f.seeds)
	draw := &source{rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
	call := reflect.ValueOf(ff)
	f.F.Fuzz(reflect.MakeFunc(call.Type(), func(args []reflect.Value) []reflect.Value {
		call.Call(args)
		t := args[0].Interface().(*testing.T)
		for i := 0; i < each && !t.Failed(); i++ {
			try(t, call, draw.mutation(f.seeds))
		}
		return nil
	}).Interface())
}

// fuzzing reports whether `go test -fuzz` runs.
func fuzzing() bool { return flag.Lookup("test.fuzz").Value.String() != "" }

// try runs a target on an input, and logs the input if it fails.
func try(t *testing.T, target reflect.Value, input []any) {
	t.Helper()
	ended := false
	defer func() {
		if !ended || t.Failed() {
			t.Logf("the input, for a file in testdata/fuzz/%s:\n%s", strings.SplitN(t.Name(), "/", 2)[0], file(input))
		}
	}()
	args := []reflect.Value{reflect.ValueOf(t)}
	for _, v := range input {
		args = append(args, reflect.ValueOf(v))
	}
	target.Call(args)
	ended = true
}

// file returns an input in the form of a file of Go's corpus.
func file(input []any) string {
	var b strings.Builder
	b.WriteString("go test fuzz v1\n")
	for _, v := range input {
		switch v := v.(type) {
		case []byte:
			fmt.Fprintf(&b, "[]byte(%q)\n", v)
		case string:
			fmt.Fprintf(&b, "string(%q)\n", v)
		default:
			fmt.Fprintf(&b, "%T(%v)\n", v, v)
		}
	}
	return b.String()
}
