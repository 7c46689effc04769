package settings

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestVariablesOf: a kind with a prefix of its own reads its own variables, and a kind
// with names of its own those. --config has a single variable.
func TestVariablesOf(t *testing.T) {
	own := Kind{Prefix: "SAMYA_THING_", Variables: func(flag string) Variables { return Variables{Names: []string{"OWN_" + flag}} }}
	for _, test := range []struct {
		kind Kind
		flag string
		want string
	}{
		{Kind{}, "gossip-wait", "SAMYA_GOSSIP_WAIT"},
		{Kind{Prefix: "SAMYA_THING_"}, "gossip-wait", "SAMYA_THING_GOSSIP_WAIT"},
		{Kind{Prefix: "SAMYA_THING_"}, ConfigFlag, "SAMYA_CONFIG"},
		{own, "addr", "OWN_addr"},
		{own, ConfigFlag, "SAMYA_CONFIG"},
	} {
		if got := test.kind.VariablesOf(test.flag); !slices.Equal(got.Names, []string{test.want}) || got.Former+got.Refused != "" {
			t.Errorf("%s%s: %+v, want %q", test.kind.Prefix, test.flag, got, test.want)
		}
	}
}

// TestFromEnvironment: the first variable that is set and not empty counts. None counts
// for a flag of the command line, a hidden flag or --help.
func TestFromEnvironment(t *testing.T) {
	kind := twoNames()
	for name, test := range map[string]struct {
		args        []string
		env         map[string]string
		flag        string
		value, from string
	}{
		"its own first":       {env: map[string]string{"SAMYA_CLIENT_NAME": "own", "SAMYA_NAME": "all"}, flag: "name", value: "own", from: "SAMYA_CLIENT_NAME"},
		"an empty one":        {env: map[string]string{"SAMYA_CLIENT_NAME": "", "SAMYA_NAME": "all"}, flag: "name", value: "all", from: "SAMYA_NAME"},
		"none":                {flag: "name", value: "none"},
		"on the command line": {args: []string{"--name", "line"}, env: map[string]string{"SAMYA_NAME": "all"}, flag: "name", value: "line"},
		"hidden":              {env: map[string]string{"SAMYA_HIDDEN": "all"}, flag: "hidden"},
		"help":                {env: map[string]string{"SAMYA_HELP": "true"}, flag: "help", value: "false"},
	} {
		f := flags(new(values))
		f.Bool("help", false, "help")
		if err := f.Parse(test.args); err != nil {
			t.Fatal(err)
		}
		from, err := kind.FromEnvironment(f, f.Lookup(test.flag), func(k string) (string, bool) { v, ok := test.env[k]; return v, ok })
		if err != nil || from != test.from || f.Lookup(test.flag).Value.String() != test.value {
			t.Errorf("%s: %q from %q, %v; want %q from %q", name, f.Lookup(test.flag).Value, from, err, test.value, test.from)
		}
	}
	bad := flags(new(values))
	_, err := kind.FromEnvironment(bad, bad.Lookup("n"), func(string) (string, bool) { return strings.Repeat("9", 200), true })
	if err == nil || len(err.Error()) > 200 || !strings.HasPrefix(err.Error(), "environment variable SAMYA_CLIENT_N: ") {
		t.Errorf("a long value that is no number: %v", err)
	}
}

// twoNames is a kind with two names of each variable.
func twoNames() Kind {
	return Kind{Variables: func(flag string) Variables {
		return Variables{Names: []string{Variable("SAMYA_CLIENT_", flag), Variable(DefaultPrefix, flag)}}
	}}
}

// TestFormerVariable: a former name counts with a warning, unless the present name is set.
// A refused name is an error, unless a present name is set.
func TestFormerVariable(t *testing.T) {
	kind := Kind{Name: "thing", Variables: func(flag string) Variables {
		v := Variables{Names: []string{Variable("SAMYA_THING_", flag)}, Former: Variable(DefaultPrefix, flag)}
		if flag == "n" {
			v.Former, v.Refused, v.Why = "", v.Former, "the name is SAMYA_THING_N"
		}
		return v
	}}
	for name, test := range map[string]struct {
		env                  map[string]string
		value, warning, fail string
	}{
		"present":           {env: map[string]string{"SAMYA_THING_NAME": "new"}, value: "new"},
		"former":            {env: map[string]string{"SAMYA_NAME": "old"}, value: "old", warning: "SAMYA_NAME: a former name, read for the last time in this release; the name is SAMYA_THING_NAME"},
		"both":              {env: map[string]string{"SAMYA_NAME": "old", "SAMYA_THING_NAME": "new"}, value: "new"},
		"refused":           {env: map[string]string{"SAMYA_N": "1"}, value: "none", fail: "environment variable SAMYA_N: the name is SAMYA_THING_N"},
		"refused and empty": {env: map[string]string{"SAMYA_N": ""}, value: "none"},
		"refused and new":   {env: map[string]string{"SAMYA_N": "1", "SAMYA_THING_N": "2"}, value: "none"},
	} {
		f := flags(new(values))
		s, err := Settle(f, kind, nil, func(k string) (string, bool) { v, ok := test.env[k]; return v, ok })
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got := f.Lookup("name").Value.String(); got != test.value || text != test.fail {
			t.Errorf("%s: %q, %q, want %q, %q", name, got, text, test.value, test.fail)
		}
		want := []string{"environment variable " + test.warning}
		if test.warning == "" {
			want = nil
		}
		if !slices.Equal(s.Warnings, want) {
			t.Errorf("%s: warnings %q, want %q", name, s.Warnings, want)
		}
	}
}

// TestFileIsReadToItsEnd: a file of the largest size is read, and a byte more is
// refused: read in part, it would be another configuration.
func TestFileIsReadToItsEnd(t *testing.T) {
	for _, more := range []int{0, 1} {
		const head, tail = "other:\n  n: 7\n", "\n  name: x\n"
		text := head + "#" + strings.Repeat("c", maxFile+more-len(head)-len(tail)-1) + tail
		path := filepath.Join(t.TempDir(), "f.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Read(path, kinds())
		if more > 0 {
			if err == nil || !strings.Contains(err.Error(), "longer than") {
				t.Errorf("%d bytes: %v", len(text), err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if n := len(f.sections["other"]); n != 2 {
			t.Errorf("%d settings of a file of %d bytes, want 2", n, len(text))
		}
	}
}

// TestKeysInMessages: a key is told as it stands unless that could write to a terminal,
// and capitals and underscores are still recognised.
func TestKeysInMessages(t *testing.T) {
	for text, want := range map[string]string{
		"thing:\n  \"na\\eme\": x\n":  "f.yaml:2: thing.\"na\\x1bme\": no such key; did you mean name?",
		"thing:\n  Gossip_Wait: 1s\n": "f.yaml:2: thing.Gossip_Wait: no such key; did you mean gossip-wait?",
		"thing:\n  GOSSIP_WAI: 1s\n":  "f.yaml:2: thing.GOSSIP_WAI: no such key; did you mean gossip-wait?",
	} {
		if _, err := settle(new(values), text, nil, nil); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestListsCountAsSet: a list from a file counts as set, as on the command line.
// Commands look at that to find settings left alone.
func TestListsCountAsSet(t *testing.T) {
	file, err := Parse("f.yaml", []byte("thing:\n  join: [a]\n"), kinds())
	if err != nil {
		t.Fatal(err)
	}
	f := flags(new(values))
	if _, err := Settle(f, kinds()[0], file, func(string) (string, bool) { return "", false }); err != nil {
		t.Fatal(err)
	}
	if !f.Changed("join") || f.Changed("name") {
		t.Error("a list from a file is not set, or what the file leaves out is")
	}
}

// TestOtherFlagsThanTheKinds: a command may lack flags of its kind, and may want more of
// a value than the kind does; a kind that is optional need not stand in the file.
func TestOtherFlagsThanTheKinds(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	file, err := Parse("f.yaml", []byte("thing:\n  n: -1\n  name: x\n"), kinds())
	if err != nil {
		t.Fatal(err)
	}
	strict := pflag.NewFlagSet("strict", pflag.ContinueOnError)
	strict.Uint("n", 3, "how many, from 0")
	_, err = Settle(strict, kinds()[0], file, none)
	bad, ok := errors.AsType[*Error](err)
	if !ok || bad.Line != 2 || bad.Key != "thing.n" || bad.File != "f.yaml" || !strings.Contains(bad.Problem, "whole number from 0") {
		t.Errorf("a value that the command cannot take: %v", err)
	}
	if _, err := Settle(flags(new(values)), kinds()[1], file, none); err != nil {
		t.Errorf("a kind that need not be there: %v", err)
	}
}

// TestLocateFiles: an error about the contents of a file of secrets is located at the
// flag that names the file.
func TestLocateFiles(t *testing.T) {
	f := func() *pflag.FlagSet {
		f := pflag.NewFlagSet("thing", pflag.ContinueOnError)
		f.String("token-file", "", "where the token is")
		return f
	}
	kind := Kind{Name: "thing", Flags: f()}
	file, err := Parse("f.yaml", []byte("thing:\n  token-file: x\n"), []Kind{kind})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Settle(f(), kind, file, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Locate(errors.New("token: empty")).Error(); got != "f.yaml:2: thing.token-file: empty" {
		t.Errorf("located at %q", got)
	}
}

// TestShown: sizes are shown in the largest unit that is exact, and text that some YAML
// would read as something else in quotes.
func TestShown(t *testing.T) {
	for n, want := range map[size]string{0: "0", 1: "1", 1023: "1023", 1 << 10: "1KiB", 3 << 20: "3MiB", 1<<20 + 1: "1048577", 5 << 30: "5GiB", 1 << 40: "1TiB", -1 << 10: "-1KiB"} {
		if got := n.String(); got != want {
			t.Errorf("%d bytes are shown as %s, want %s", int64(n), got, want)
		}
	}
	for _, word := range []string{"true", "False", "yes", "NO", "on", "off", "y", "n", "null", "", "7", "a b", "x: y", "#"} {
		if got := yamlText(word); !strings.HasPrefix(got, `"`) {
			t.Errorf("%q is shown as %s", word, got)
		}
	}
	for _, word := range []string{"us-east1", "/var/lib/samya", "onto", "v1.2_3"} {
		if got := yamlText(word); got != word {
			t.Errorf("%q is shown as %s", word, got)
		}
	}
	f := pflag.NewFlagSet("thing", pflag.ContinueOnError)
	f.StringSlice("join", nil, "where")
	f.String("name", "", "what")
	f.Int("n", 3, "how many")
	for flag, want := range map[string]string{"join": "", "name": "", "n": "`3`"} {
		if got := defaultOf(f.Lookup(flag)); got != want {
			t.Errorf("the default of %s is %q, want %q", flag, got, want)
		}
	}
}

// TestFormerName: a former name of a setting is refused on the command line, in the
// environment and in a file. Each error tells the present name.
func TestFormerName(t *testing.T) {
	kind := func() Kind {
		f := pflag.NewFlagSet("thing", pflag.ContinueOnError)
		f.String("grpc", "", "")
		Former(f, "listen", "grpc")
		return Kind{Name: "thing", Flags: f}
	}
	const want = "the name of this setting is now grpc"
	for _, args := range [][]string{{"--listen", "a:1"}, {"--listen=a:1"}} {
		if err := kind().Flags.Parse(args); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v", args, err)
		}
	}
	_, err := Settle(kind().Flags, kind(), nil, func(k string) (string, bool) { return "a:1", k == "SAMYA_LISTEN" })
	if err == nil || err.Error() != "environment variable SAMYA_LISTEN: "+want {
		t.Error(err)
	}
	_, err = Parse("f.yaml", []byte("thing:\n  listen: a:1\n"), []Kind{kind()})
	if err == nil || err.Error() != "f.yaml:2: thing.listen: "+want {
		t.Error(err)
	}
	if keys := kind().Keys(); len(keys) != 1 || keys[0].Name != "grpc" {
		t.Errorf("%d keys", len(keys))
	}
}
