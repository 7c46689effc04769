package settings

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// SizeVar defines a flag with a number of bytes: "67108864", "64MiB" or "64MB".
func SizeVar(f *pflag.FlagSet, p *int64, name string, value int64, usage string) {
	*p = value
	f.Var((*size)(p), name, usage)
}

// size is a number of bytes, printed in the largest unit that is exact.
type size int64

// units are the units of a number of bytes. String uses the first four, which are binary,
// largest first. "B" is last, because it ends all other names.
var units = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40},
	{"GiB", 1 << 30},
	{"MiB", 1 << 20},
	{"KiB", 1 << 10},
	{"TB", 1e12},
	{"GB", 1e9},
	{"MB", 1e6},
	{"KB", 1e3},
	{"kB", 1e3},
	{"B", 1},
}

// Set implements [pflag.Value].
func (s *size) Set(text string) error {
	number, unit := strings.TrimSpace(text), int64(1)
	for _, u := range units {
		if before, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = strings.TrimSpace(before), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return errors.New("want a whole number of bytes, KiB, MiB, GiB, KB, MB or GB")
	}
	if n > math.MaxInt64/unit || n < math.MinInt64/unit {
		return errors.New("too large")
	}
	*s = size(n * unit)
	return nil
}

// String implements [pflag.Value].
func (s *size) String() string {
	n := int64(*s)
	for _, u := range units[:4] {
		if n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// Type implements [pflag.Value].
func (s *size) Type() string { return "size" }

// Former refuses the former name of a setting, wherever it stands, with an error that
// tells the present name. The flag of the former name is hidden. old may end with a comma
// and a shorthand.
func Former(f *pflag.FlagSet, old, present string) {
	old, shorthand, _ := strings.Cut(old, ",")
	flag := f.VarPF(former(present), old, shorthand, "former name of --"+present)
	flag.Hidden, flag.NoOptDefVal = true, "true"
}

// FormerOfAnother is [Former] for a name whose variable another command reads: the
// variable says nothing about this command.
func FormerOfAnother(f *pflag.FlagSet, old, present string) {
	Former(f, old, present)
	must(f.SetAnnotation(old, noVariable, []string{}))
}

// noVariable is the annotation of a flag without a variable.
const noVariable = "samya.no-variable"

// HasVariable reports whether the environment can set a flag, or is refused for setting
// the former name of one.
func HasVariable(f *pflag.Flag) bool {
	_, isFormer := f.Value.(former)
	_, without := f.Annotations[noVariable]
	return f.Name != "help" && !without && (isFormer || !f.Hidden)
}

// must panics on an error that only a mistake in this program can cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// FlagError is the error of a command line, told by the names of flags alone where a flag
// has a former name.
func FlagError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	if present, is := invalid.GetFlag().Value.(former); is {
		return fmt.Errorf("--%s is --%s now", invalid.GetFlag().Name, string(present))
	}
	return err
}

// former is the value of a flag with a former name; it holds the present name.
type former string

// Set implements [pflag.Value].
func (f former) Set(string) error {
	return fmt.Errorf("the name of this setting is now %s", string(f))
}

// String implements [pflag.Value].
func (f former) String() string { return "" }

// Type implements [pflag.Value].
func (f former) Type() string { return "former" }

// typeName names the type of a flag's values.
func typeName(f *pflag.Flag) string {
	switch t := f.Value.Type(); t {
	case "stringSlice", "stringArray":
		return "list"
	case "bool":
		return "boolean (true or false)"
	case "int", "int32", "int64":
		return "whole number"
	case "uint", "uint16", "uint32", "uint64":
		return "whole number from 0"
	case "float32", "float64":
		return "number"
	case "duration":
		return "duration (90s, 5m, 1h30m)"
	case "size":
		return "size (64MiB, 64MB)"
	case "string":
		return "text"
	default:
		return t
	}
}

// yamlValue returns a flag's value as written in a file.
func yamlValue(f *pflag.Flag) string {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		quoted := make([]string, 0, 8)
		for _, v := range list.GetSlice() {
			quoted = append(quoted, yamlText(v))
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	if f.Value.Type() == "string" {
		return yamlText(f.Value.String())
	}
	return f.Value.String()
}

// yamlText quotes a text that YAML would not read as text.
func yamlText(s string) string {
	if s == "" {
		return `""`
	}
	safe := strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("/._-", r)
	}) < 0
	if c := s[0]; safe && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '/') && !isWord(s) {
		return s
	}
	return fmt.Sprintf("%q", s)
}

// isWord reports whether YAML, of some version, reads s as something other than text.
func isWord(s string) bool {
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "y", "n", "null":
		return true
	}
	return false
}
