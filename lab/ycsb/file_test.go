package ycsb

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/samya-db/samya/internal/testfuzz"
	"github.com/samya-db/samya/kvpart"
)

// readAll reads all operations of a file.
func readAll(r io.Reader) (ops []Op, err error) {
	f := NewReader(r, "client-1")
	for {
		op, err := f.Next()
		if errors.Is(err, io.EOF) {
			return ops, nil
		}
		if err != nil {
			return ops, err
		}
		ops = append(ops, op)
	}
}

func TestFile(t *testing.T) {
	var text []byte
	var want []Op
	g := workload(t, "F", func(o *Options) { o.Mix.Read, o.Mix.Scan, o.Mix.Insert = .1, .2, .2 }).Client(0)
	for range 1000 {
		op := g.Next()
		var err error
		if text, err = Append(text, op); err != nil {
			t.Fatal(err)
		}
		if op.Kind == Modify {
			want = append(want, Op{Kind: Read, Key: op.Key})
			op.Kind = Write
		}
		want = append(want, op)
	}
	got, err := readAll(iotest.OneByteReader(bytes.NewReader(text)))
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v: %d operations of %d", err, len(got), len(want))
	}
	got, err = readAll(strings.NewReader("0,7\r\n\n 2,user 1,3\n1,last"))
	want = []Op{{Read, 0, "7"}, {Scan, 3, "user 1"}, {Write, 0, "last"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestFileErrors(t *testing.T) {
	long := strings.Repeat("k", kvpart.MaxKey+1)
	for line, want := range map[string]string{
		"3,a":                        "does not begin with",
		"a":                          "does not begin with",
		"00,a":                       "does not begin with",
		"0":                          "does not begin with",
		"0,":                         "no key",
		"1,a,b":                      "comma",
		"1, a":                       "white space",
		"2,a":                        "without a limit",
		"2,a,0":                      "limit must be",
		"2,a,-1":                     "limit must be",
		"2,a,65537":                  "limit must be",
		"2,a,5,6":                    "limit must be",
		"2,,5":                       "no key",
		"0," + long:                  "above 4096",
		"0," + long + long:           "longer than",
		strings.Repeat("x", 200_000): "longer than",
	} {
		ops, err := readAll(strings.NewReader("0,a\n\n" + line + "\n0,b\n"))
		bad, ok := errors.AsType[*FormatError](err)
		if !ok || bad.Line != 3 || bad.File != "client-1" || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "client-1:3: ") {
			t.Errorf("%.20s: %v, want %q at line 3", line, err, want)
		}
		if len(ops) != 1 {
			t.Errorf("%.20s: %d operations before it", line, len(ops))
		}
	}
	broken := errors.New("broken")
	if _, err := readAll(io.MultiReader(strings.NewReader("0,a\n"), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("%v, want what reading failed with", err)
	}
}

func TestAppendRefuses(t *testing.T) {
	for _, op := range []Op{{Key: ""}, {Key: "a,b"}, {Key: "a\n"}, {Key: " a"}, {Kind: Scan, Key: "a"}, {Kind: kinds, Key: "a"}} {
		if b, err := Append([]byte("x"), op); err == nil || string(b) != "x" {
			t.Errorf("%+v: %q, %v", op, b, err)
		}
	}
}

// FuzzReader checks that operations, once read, are written and read as the same, and
// that errors name an existing line.
func FuzzReader(tf *testing.F) {
	f := testfuzz.On(tf)
	for _, s := range []string{"", "0,a\n1,b\n2,c,8\n", "2,a,0", "0,a,b", "\n\n1,x", "2,\xff,65536\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		ops, err := readAll(bytes.NewReader(text))
		if err != nil {
			bad, ok := errors.AsType[*FormatError](err)
			if !ok || bad.Line < 1 || bad.Line > bytes.Count(text, []byte("\n"))+1 {
				t.Fatalf("an error that names no line: %v", err)
			}
		}
		var again []byte
		for _, op := range ops {
			var err error
			if again, err = Append(again, op); err != nil {
				t.Fatalf("read %+v, which has no form: %v", op, err)
			}
		}
		if twice, err := readAll(bytes.NewReader(again)); err != nil || !slices.Equal(twice, ops) {
			t.Fatalf("%v, then %v: %v", ops, twice, err)
		}
	})
}

func ExampleReader() {
	r := NewReader(strings.NewReader("0,user1\n2,user2,8\n3,user3\n"), "client-0.csv")
	for {
		op, err := r.Next()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(op.Kind, op.Key, op.Limit)
	}
	// Output:
	// read user1 0
	// scan user2 8
	// client-0.csv:3: the line does not begin with 0, for a read, 1, a write, or 2, a scan, and a comma
}
