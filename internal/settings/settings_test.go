package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"pgregory.net/rapid"

	"github.com/samya-db/samya/internal/testfuzz"
)

// values holds the values of the test's flags.
type values struct {
	name   string
	joins  []string
	wait   time.Duration
	limit  int64
	n      int
	on     bool
	secret string
}

func flags(v *values) *pflag.FlagSet {
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.StringVar(&v.name, "name", "none", "its `name` | in full")
	f.StringSliceVar(&v.joins, "join", []string{"x"}, "where")
	f.DurationVar(&v.wait, "gossip-wait", time.Second, "how long")
	SizeVar(f, &v.limit, "limit", 64<<20, "how much")
	f.IntVar(&v.n, "n", 3, "how many")
	f.BoolVar(&v.on, "on", false, "whether")
	f.StringVar(&v.secret, "hidden", "", "no key")
	if err := f.MarkHidden("hidden"); err != nil {
		panic(err)
	}
	f.String(ConfigFlag, "", "no key")
	return f
}

func kinds() []Kind {
	return []Kind{
		{Name: "thing", About: "things", Flags: flags(new(values))},
		{Name: "other", About: "others", Flags: flags(new(values)), Optional: true},
	}
}

// settle settles the flags of a command.
func settle(v *values, text string, args []string, env map[string]string) (*Settled, error) {
	f := flags(v)
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	file, err := Parse("f.yaml", []byte(text), kinds())
	if err != nil {
		return nil, err
	}
	return Settle(f, kinds()[0], file, func(k string) (string, bool) { value, ok := env[k]; return value, ok })
}

func TestFlagBeforeEnvironmentBeforeFile(t *testing.T) {
	const text = "thing:\n  name: file\n  join: [a, 'b,c']\n  gossip-wait: 90s\n  limit: 2GiB\n  n: 0x10\n"
	var v values
	s, err := settle(&v, text, []string{"--name", "flag"}, map[string]string{
		"SAMYA_NAME": "env", "SAMYA_GOSSIP_WAIT": "3m", "SAMYA_N": "", "SAMYA_HIDDEN": "env", "SAMYA_CONFIG": "env",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := values{name: "flag", joins: []string{"a", "b,c"}, wait: 3 * time.Minute, limit: 2 << 30, n: 16}
	if !reflect.DeepEqual(v, want) {
		t.Errorf("%+v, want %+v", v, want)
	}
	for flag, want := range map[string]string{
		"name": "--name", "gossip-wait": "SAMYA_GOSSIP_WAIT", "join": "f.yaml:3", "limit": "f.yaml:5", "n": "f.yaml:6", "on": "default",
	} {
		if got := s.Origin(flag); got != want {
			t.Errorf("%s is from %s, want %s", flag, got, want)
		}
	}
	var b strings.Builder
	if err := s.Show(&b); err != nil {
		t.Fatal(err)
	}
	if want := `thing:
  gossip-wait: 3m0s  # SAMYA_GOSSIP_WAIT
  join: [a, "b,c"]   # f.yaml:3
  limit: 2GiB        # f.yaml:5
  n: 16              # f.yaml:6
  name: flag         # --name
  on: false          # default
`; b.String() != want {
		t.Errorf("shows\n%s\nwant\n%s", b.String(), want)
	}
}

// TestRefusals: all refusals are told at once, each with its line and its path.
func TestRefusals(t *testing.T) {
	long := strings.Repeat("k", 100)
	for name, test := range map[string]struct{ text, want string }{
		"unknown":           {"thing:\n  naem: x\n", "f.yaml:2: thing.naem: no such key; did you mean name?"},
		"far off":           {"thing:\n  colour: x\n", "f.yaml:2: thing.colour: no such key; samya config show thing lists all there are"},
		"underscore":        {"thing:\n  gossip_wait: 1s\n", "f.yaml:2: thing.gossip_wait: no such key; did you mean gossip-wait?"},
		"unknown kind":      {"thing: {}\nthin: {}\n", "f.yaml:2: thin: no such key; did you mean thing?"},
		"unknown far kind":  {"thing: {}\nregion: us\n", "f.yaml:2: region: no such key; there are thing, other"},
		"other's section":   {"thing: {}\nother:\n  x: 1\n", "f.yaml:3: other.x: no such key; samya config show other lists all there are"},
		"hidden":            {"thing:\n  hidden: x\n", "f.yaml:2: thing.hidden: no such key; samya config show thing lists all there are"},
		"config in config":  {"thing:\n  config: x\n", "f.yaml:2: thing.config: no such key; samya config show thing lists all there are"},
		"long key":          {"thing:\n  " + long + ": x\n", "f.yaml:2: thing.\"" + long[:64] + "\": no such key; samya config show thing lists all there are"},
		"no section":        {"other: {}\n", "f.yaml: thing: no such key, and this process takes its settings from there"},
		"twice":             {"thing:\n  n: 1\n  n: 2\n", "f.yaml:3: thing.n: stands there twice, first in line 2"},
		"kind twice":        {"thing: {}\nthing: {}\n", "f.yaml:2: thing: stands there twice, first in line 1"},
		"no value":          {"thing:\n  name:\n", "f.yaml:2: thing.name: without a value; leave the key away for the default"},
		"list of nothing":   {"thing:\n  join: [a, ]\n  name: [a]\n", "f.yaml:3: thing.name: a list, want one text"},
		"list of lists":     {"thing:\n  join: [[a]]\n", "f.yaml:2: thing.join[0]: a list, want a value"},
		"keys":              {"thing:\n  name: {a: b}\n", "f.yaml:2: thing.name: keys and values, want a value"},
		"bad duration":      {"thing:\n  gossip-wait: 5\n", `f.yaml:2: thing.gossip-wait: "5" is no duration (90s, 5m, 1h30m): missing unit in duration "5"`},
		"bad size":          {"thing:\n  limit: 5 MM\n", `f.yaml:2: thing.limit: "5 MM" is no size (64MiB, 64MB): want a whole number of bytes, KiB, MiB, GiB, KB, MB or GB`},
		"bad number":        {"thing:\n  n: 1.5\n", `f.yaml:2: thing.n: "1.5" is no whole number: invalid syntax`},
		"bad boolean":       {"thing:\n  on: yes\n", `f.yaml:2: thing.on: "yes" is no boolean (true or false): invalid syntax`},
		"bad where unread":  {"thing: {}\nother:\n  n: x\n", `f.yaml:3: other.n: "x" is no whole number: invalid syntax`},
		"empty":             {"", "f.yaml: empty"},
		"a comment":         {"# nothing\n", "f.yaml: empty"},
		"nothing":           {"thing:\n", "f.yaml:1: thing: nothing, want keys and values"},
		"no mapping":        {"- thing\n", "f.yaml:1: a list, want keys and values"},
		"two documents":     {"thing: {}\n---\nthing: {}\n", "f.yaml:2: a second document"},
		"syntax":            {"thing:\n  name: x\n n: 1\n", "f.yaml:2: did not find expected key"},
		"syntax after":      {"thing: {}\n---\n}\n", "f.yaml:2: did not find expected node content"},
		"tab":               {"thing:\n\tname: x\n", "f.yaml:2: found character that cannot start any token"},
		"alias":             {"thing:\n  name: &a x\n  join: *a\n", "f.yaml:3: thing.join: an alias, which is not supported"},
		"merge":             {"other: &a {n: 1}\nthing:\n  <<: *a\n", "f.yaml:3: thing: a key that is no name"},
		"tag":               {"thing:\n  name: !!binary eA==\n", "f.yaml:2: thing.name: of type !!binary, want a plain value"},
		"key that is a map": {"thing:\n  {a: b}: c\n", "f.yaml:2: thing: a key that is no name"},
		"all at once": {
			"thing:\n  naem: x\n  n: x\nthin: {}\n",
			"f.yaml:2: thing.naem: no such key; did you mean name?\n" +
				"f.yaml:3: thing.n: \"x\" is no whole number: invalid syntax\n" +
				"f.yaml:4: thin: no such key; did you mean thing?",
		},
		"too long": {strings.Repeat("#\n", maxFile), fmt.Sprintf("f.yaml: longer than %d bytes", maxFile)},
	} {
		t.Run(name, func(t *testing.T) {
			var v values
			_, err := settle(&v, test.text, nil, nil)
			if err == nil || err.Error() != test.want {
				t.Errorf("got\n%v\nwant\n%s", err, test.want)
			}
			if _, ok := errors.AsType[*Error](err); err != nil && !ok {
				t.Errorf("no *Error: %v", err)
			}
		})
	}
}

func TestBadEnvironment(t *testing.T) {
	var v values
	_, err := settle(&v, "thing: {}\n", nil, map[string]string{"SAMYA_N": "many"})
	if want := `environment variable SAMYA_N: "many" is no whole number: invalid syntax`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestRead(t *testing.T) {
	if _, err := Read(filepath.Join(t.TempDir(), "none"), kinds()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	path := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(path, []byte("other: {n: 1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Read(path, kinds())
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Sections(kinds()); len(got) != 1 || got[0].Name != "other" {
		t.Errorf("sections %v", got)
	}
}

// TestLocate: an error of a command about its settings is told with the place of each
// setting. It still matches the same errors.
func TestLocate(t *testing.T) {
	var v values
	s, err := settle(&v, "thing:\n  n: 1\n  join: [a, b]\n  gossip-wait: 2s\n", []string{"--limit", "1"}, map[string]string{"SAMYA_ON": "true"})
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("cause")
	err = fmt.Errorf("usage: %w", errors.Join(
		errors.New("n: at least 2"),
		fmt.Errorf("gossip: %w", errors.Join(errors.New("join[1]: bad"), errors.New("wait: too short"))),
		errors.New("on: must be off"),
		errors.New("limit: too small"),
		errors.New("name: empty"),
		fmt.Errorf("open a file: %w", cause),
	))
	// Not an error of a field as a whole: its parts are.
	inner := errors.Unwrap(err)
	got := s.Locate(inner)
	if want := "f.yaml:2: thing.n: at least 2\n" +
		"f.yaml:3: thing.join[1]: bad\n" +
		"f.yaml:4: thing.gossip-wait: too short\n" +
		"SAMYA_ON: must be off\n" +
		"limit: too small\n" +
		"f.yaml: thing.name: empty\n" +
		"open a file: cause"; got.Error() != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if !errors.Is(got, cause) {
		t.Error("what it matched is lost")
	}
	for _, err := range []error{nil, cause, errors.New("limit: too small"), errors.New("n is small"), errors.New("hidden: x")} {
		if got := s.Locate(err); got != err { //nolint:errorlint // the very same
			t.Errorf("%v becomes %v", err, got)
		}
	}
	if got := (*Settled)(nil).Locate(cause); got != cause { //nolint:errorlint // the very same
		t.Errorf("nobody settled, and it becomes %v", got)
	}
}

func TestReference(t *testing.T) {
	var b strings.Builder
	if err := Reference(&b, kinds()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\n## `thing`\n\nFor things. Variables: `SAMYA_…`.\n",
		"\n| `name` | text | `none` | its name \\| in full |\n",
		"\n| `limit` | size | `64MiB` | how much |\n",
		"\n| `join` | list | `[x]` | where |\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "`hidden`") || strings.Contains(b.String(), "`config`") {
		t.Error("tells of flags that are no keys")
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "-1": -1, "64MiB": 64 << 20, " 64 MiB ": 64 << 20, "1GB": 1e9, "3kB": 3000, "3KB": 3000, "7B": 7, "1TiB": 1 << 40,
	} {
		var s size
		if err := s.Set(text); err != nil || int64(s) != want {
			t.Errorf("%q is %d, %v; want %d", text, s, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "1.5MiB", "1e3", "9000000TiB", "-9000000TiB", "1 MiBB", "99999999999999999999"} {
		s := size(7)
		if err := s.Set(text); err == nil || s != 7 {
			t.Errorf("%q is %d", text, s)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := size(rapid.Int64().Draw(t, "n") << rapid.SampledFrom([]int{0, 10, 20, 40}).Draw(t, "shift"))
		var back size
		if err := back.Set(n.String()); err != nil || back != n {
			t.Fatalf("%d is printed as %s, which is %d, %v", int64(n), n.String(), int64(back), err)
		}
	})
	if s := size(math.MinInt64); s.String() == "" {
		t.Error("nothing printed")
	}
}

// TestShownIsAFile: the shown settings set the same values when they are read.
func TestShownIsAFile(t *testing.T) {
	words := []string{"", "x", "a b", "true", "No", "null", "~", "007", "1e3", "#", ": ", "a: b", "é", "\n", "'", `"`, "!x", "*a", "-", "[", "2001-01-01", "/a/b.c", "10.0.0.1:1"}
	rapid.Check(t, func(t *rapid.T) {
		var first, second values
		f := flags(&first)
		args := []string{
			"--name=" + rapid.SampledFrom(words).Draw(t, "name"),
			fmt.Sprintf("--n=%d", rapid.Int().Draw(t, "n")),
			fmt.Sprintf("--limit=%d", rapid.Int64().Draw(t, "limit")),
			fmt.Sprintf("--gossip-wait=%v", time.Duration(rapid.Int64().Draw(t, "wait"))),
		}
		if err := f.Parse(args); err != nil {
			t.Fatal(err)
		}
		first.joins = rapid.SliceOf(rapid.SampledFrom(words)).Draw(t, "joins")
		s, err := Settle(f, kinds()[0], nil, func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := s.Show(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := settle(&second, b.String(), nil, nil); err != nil {
			t.Fatalf("%v in\n%s", err, b.String())
		}
		if !slices.Equal(first.joins, second.joins) {
			t.Fatalf("%q becomes %q by\n%s", first.joins, second.joins, b.String())
		}
		first.joins, second.joins = nil, nil
		if !reflect.DeepEqual(first, second) {
			t.Fatalf("%+v becomes %+v by\n%s", first, second, b.String())
		}
	})
}

// FuzzParse: no text crashes the reader of files, and each error names the file.
func FuzzParse(tf *testing.F) {
	f := testfuzz.On(tf)
	for _, s := range []string{
		"thing:\n  name: file\n  join: [a, 'b,c']\n  gossip-wait: 90s\n", "thing: &a\n  <<: *a\n", "a: [", "thing: {n: 1, n: 2}",
		"---\n...\n---\n", "? [a]\n: b\n", "thing:\n  join: [&a [*a]]\n", "%YAML 1.2\n---\nthing: !!set {a}\n", "\x00", "\xff\xfe",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Parse("f.yaml", []byte(text), kinds())
		if (file == nil) == (err == nil) {
			t.Fatalf("%v, %v", file, err)
		}
		if err == nil {
			return
		}
		for _, line := range parts(err, "") {
			if !strings.HasPrefix(line, "f.yaml:") {
				t.Errorf("%q does not tell the file", line)
			}
		}
	})
}
