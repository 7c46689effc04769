package testfuzz

import (
	"bytes"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/race"
)

// FuzzCounted is run on all its seeds, and on as many mutations as there should be.
func FuzzCounted(tf *testing.F) {
	f := On(tf)
	seeds := [][]byte{[]byte("one"), []byte("another"), {}}
	for _, s := range seeds {
		f.Add(s, "text", int64(7), uint8(3), 1.5, true)
	}
	runs, changed := 0, [6]int{}
	f.Fuzz(func(_ *testing.T, b []byte, s string, i int64, u uint8, x float64, is bool) {
		runs++
		for k, same := range []bool{
			bytes.Equal(b, seeds[0]) || bytes.Equal(b, seeds[1]) || len(b) == 0, s == "text", i == 7, u == 3, x == 1.5, is,
		} {
			if !same {
				changed[k]++
			}
		}
	})
	if tf.Failed() || runs == 0 || fuzzing() { // -run chose none
		return
	}
	want := inputs
	if race.Enabled {
		want /= 10
	}
	if runs < want+len(seeds) || runs > want+2*len(seeds) {
		f.Errorf("%d runs, want %d mutations and %d seeds", runs, want, len(seeds))
	}
	for k, n := range changed {
		if n < want/4 {
			f.Errorf("value %d was changed %d times of %d", k, n, want)
		}
	}
}

// TestMutations: mutations have the faults that parsers fall over, and leave seeds alone.
func TestMutations(t *testing.T) {
	text := []byte("a text of some length, with 12 and 34")
	seeds := [][]any{{bytes.Clone(text)}, {[]byte("####")}}
	draw := &source{rand.New(rand.NewPCG(1, 2))}
	seen := make(map[string]bool)
	for range 5000 {
		b := draw.mutation(seeds)[0].([]byte)
		for what, is := range map[string]bool{
			"the text":                      bytes.Equal(b, text),
			"an end cut off":                len(b) > 0 && len(b) < len(text) && bytes.HasPrefix(text, b),
			"nothing":                       len(b) == 0,
			"a byte of another":             len(b) == len(text) && !bytes.Equal(b, text),
			"a number beyond its width":     bytes.Contains(b, []byte{0xff, 0xff, 0xff, 0xff}),
			"a part of the other text":      bytes.Contains(b, []byte("##")) && bytes.Contains(b, []byte("text")),
			"a part twice":                  bytes.Count(b, []byte("some")) > 1,
			"a varint of more than 32 bits": bytes.Contains(b, []byte{0x80, 0x80, 0x80, 0x80, 0x80}),
		} {
			if is {
				seen[what] = true
			}
		}
	}
	if len(seen) != 8 {
		t.Errorf("of the 8 only %v were drawn", seen)
	}
	if !bytes.Equal(seeds[0][0].([]byte), text) {
		t.Errorf("the seed has become %q", seeds[0][0])
	}
}

func TestFile(t *testing.T) {
	got := file([]any{[]byte("a\x00"), "b\n", int64(-1), uint8(2), true, .5})
	if want := "go test fuzz v1\n[]byte(\"a\\x00\")\nstring(\"b\\n\")\nint64(-1)\nuint8(2)\nbool(true)\nfloat64(0.5)\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestEveryTarget: no target of the tree runs on its seeds alone.
func TestEveryTarget(t *testing.T) {
	targets := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && (d.Name() == "bin" || d.Name() == ".git") {
			return filepath.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range target.FindAllSubmatch(text, -1) {
			targets++
			if string(m[2]) != "f := testfuzz.On(tf)" && string(m[2]) != "f := On(tf)" && string(m[1]) != "FuzzPolicies" { // rapid draws all that it has
				t.Errorf("%s: %s does not begin with f := testfuzz.On(tf)", path, m[1])
			}
		}
		return nil
	})
	if err != nil || targets < 40 {
		t.Errorf("%d targets, %v", targets, err)
	}
}

// target is a fuzz target and its first line.
var target = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\) \{\n\t(.*)$`)

func TestOfOneTypeOnly(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a channel was mutated")
		}
	}()
	(&source{rand.New(rand.NewPCG(1, 2))}).number(reflect.ValueOf(make(chan int)))
}

// failEnv set to anything has FuzzFails fail.
const failEnv = "SAMYA_TEST_FUZZ_FAILS"

// FuzzFails finds a byte that its seed lacks, if TestAFailureIsTold runs it.
func FuzzFails(tf *testing.F) {
	f := On(tf)
	f.Add([]byte("seed"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if os.Getenv(failEnv) != "" && bytes.IndexByte(b, 0xff) >= 0 {
			t.Fatal("found")
		}
	})
}

func TestAFailureIsTold(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^FuzzFails$")
	cmd.Env = append(os.Environ(), failEnv+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("found")) || !bytes.Contains(out, []byte("testdata/fuzz/FuzzFails")) || !bytes.Contains(out, []byte("go test fuzz v1")) || !bytes.Contains(out, []byte(`\xff`)) {
		t.Errorf("error %v:\n%s", err, out)
	}
}
