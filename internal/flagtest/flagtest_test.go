package flagtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestFaults: a name with two types or two meanings is a fault, and so are a meaning with
// two names and a banned name.
func TestFaults(t *testing.T) {
	for title, c := range map[string]struct {
		flags []Flag
		want  string
	}{
		"fine":          {[]Flag{{"rate", "int", "a", "calls: a second"}, {"rate", "int64", "b", "calls; 0: none"}, {"rates", "intSlice", "b", "all rates"}}, ""},
		"a list":        {[]Flag{{"rate", "int", "a", "calls"}, {"rate", "intSlice", "b", "calls"}}, ""},
		"two types":     {[]Flag{{"rate", "int", "a", "calls"}, {"rate", "string", "b", "calls"}}, "--rate is a int of a, and a string of b"},
		"two meanings":  {[]Flag{{"rate", "int", "a", "calls"}, {"rate", "int", "b", "tokens"}}, `--rate of a: "calls"; of b: "tokens"`},
		"a wide word":   {[]Flag{{"dir", "string", "a", "data"}, {"dir", "string", "b", "logs"}}, ""},
		"two names":     {[]Flag{{"rate", "int", "a", "calls"}, {"speed", "int", "b", "calls, at most"}}, `"calls" is --rate of a and --speed of b`},
		"a banned name": {[]Flag{{"listen", "string", "a", "address"}}, "a --listen: the name is --grpc"},
	} {
		got := slices.DeleteFunc(Faults(c.flags), func(f string) bool { return strings.HasPrefix(f, "no command has") })
		if strings.Join(got, "\n") != c.want {
			t.Errorf("%s: %q, want %q", title, got, c.want)
		}
	}
	if got := Faults(nil); len(got) != len(words) {
		t.Errorf("without flags: %q", got)
	}
}

// TestText: Read takes the lines of Text. Hidden flags and --help are left out.
func TestText(t *testing.T) {
	root, below := &cobra.Command{Use: "a"}, &cobra.Command{Use: "b"}
	root.AddCommand(below)
	root.PersistentFlags().Int("rate", 0, "calls")
	below.Flags().String("dir", "", "data")
	below.Flags().Bool("quiet", false, "hidden")
	if err := below.Flags().MarkHidden("quiet"); err != nil {
		t.Fatal(err)
	}
	below.InitDefaultHelpFlag()
	want := []Flag{{"dir", "string", "a b", "data"}, {"rate", "int", "a", "calls"}}
	flags, err := Read(strings.NewReader(Text(Of(root))))
	if err != nil || !slices.Equal(flags, want) {
		t.Errorf("%q, %v", flags, err)
	}
	if _, err := Read(strings.NewReader("dir\tstring\n")); err == nil {
		t.Error("half a line is taken")
	}
}
