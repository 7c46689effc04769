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

// TestEnvNames: a kind with a prefix of its own reads its own variable first, then the
// shared variable, but not for reserved flags. --config has a single variable.
func TestEnvNames(t *testing.T) {
	client := Kind{Prefix: "SAMYA_CLIENT_", Reserved: map[string]bool{"tls-cert": true}}
	for _, test := range []struct {
		kind Kind
		flag string
		want []string
	}{
		{Kind{}, "gossip-wait", []string{"SAMYA_GOSSIP_WAIT"}},
		{Kind{Prefix: "SAMYA_"}, "addr", []string{"SAMYA_ADDR"}},
		{Kind{Prefix: "SAMYA_", Reserved: map[string]bool{"addr": true}}, "addr", []string{"SAMYA_ADDR"}},
		{client, "addr", []string{"SAMYA_CLIENT_ADDR", "SAMYA_ADDR"}},
		{client, "tls-cert", []string{"SAMYA_CLIENT_TLS_CERT"}},
		{client, ConfigFlag, []string{"SAMYA_CONFIG"}},
	} {
		if got := test.kind.EnvNames(test.flag); !slices.Equal(got, test.want) {
			t.Errorf("%s%s: %q, want %q", test.kind.Prefix, test.flag, got, test.want)
		}
	}
}

// TestFromEnvironment: the first variable that is set and not empty counts. None counts
// for a flag of the command line, a hidden flag or --help.
func TestFromEnvironment(t *testing.T) {
	kind := Kind{Prefix: "SAMYA_CLIENT_"}
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
