// Package settings gives the flags of a command their values: from the command line, else
// from the environment, else from a file. It remembers where each value is from. It does
// not know the meaning of a setting. The flags that a command defines are the keys, so
// that there is no second list of them; the command checks the values.
//
// A file is YAML. Its top-level keys are kinds of process; below each are keys named like
// the flags. An unknown key is an error that tells its place.
package settings

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// A Kind is a kind of process with settings in a file.
type Kind struct {
	// Name is the top-level key.
	Name string
	// About names, in a few words, the processes that take their settings from there.
	About string
	// Flags are the flags of the process. Hidden flags are no keys, nor are --help and
	// --config. Reading a file tries its values on these flags, so no process may use
	// them.
	Flags *pflag.FlagSet
	// Optional: a file may lack this kind.
	Optional bool
	// Prefix stands before the flag's name in a variable; "" is SAMYA_.
	Prefix string
	// Variables, if set, returns the variables of a flag in the place of Prefix.
	Variables func(flag string) Variables
}

// Variables are the environment variables of a flag.
type Variables struct {
	// Names are the present names. The first that is set and not empty counts.
	Names []string
	// Former, if any, counts where none of Names is set; [Settled.Warnings] tells.
	Former string
	// Refused, if any, is a name that another command gives another meaning. It is an
	// error where none of Names is set. Why ends the error.
	Refused, Why string
}

// DefaultPrefix begins the variables of a kind without a prefix of its own.
const DefaultPrefix = "SAMYA_"

// VariablesOf returns the environment variables of a flag. --config has a single variable
// for all kinds.
func (k Kind) VariablesOf(flag string) Variables {
	switch {
	case flag == ConfigFlag:
		return Variables{Names: []string{Variable(DefaultPrefix, flag)}}
	case k.Variables != nil:
		return k.Variables(flag)
	default:
		return Variables{Names: []string{Variable(cmp.Or(k.Prefix, DefaultPrefix), flag)}}
	}
}

// ConfigFlag is the flag that names the file.
const ConfigFlag = "config"

// Keys returns the flags that can be set in a file, sorted by name.
func (k Kind) Keys() []*pflag.Flag {
	var keys []*pflag.Flag
	k.Flags.VisitAll(func(f *pflag.Flag) {
		if isKey(f) {
			keys = append(keys, f)
		}
	})
	slices.SortFunc(keys, func(a, b *pflag.Flag) int { return cmp.Compare(a.Name, b.Name) })
	return keys
}

func isKey(f *pflag.Flag) bool {
	return !f.Hidden && f.Name != "help" && f.Name != ConfigFlag
}

// key returns the flag of a key, or nil.
func (k Kind) key(name string) *pflag.Flag {
	if k.Flags == nil {
		return nil
	}
	if f := k.Flags.Lookup(name); f != nil && isKey(f) {
		return f
	}
	return nil
}

// Variable returns the environment variable of a flag.
func Variable(prefix, flag string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// FromEnvironment sets a flag from the environment, unless the command line has set it.
// It returns the name of the variable, or "" if none is set. An empty variable counts as
// not set. A variable of a former flag is an error, and so is a refused one.
func (k Kind) FromEnvironment(flags *pflag.FlagSet, f *pflag.Flag, env func(string) (string, bool)) (string, error) {
	if f.Changed || !HasVariable(f) {
		return "", nil
	}
	isSet := func(name string) bool {
		value, ok := env(name)
		return ok && value != ""
	}
	v := k.VariablesOf(f.Name)
	names := v.Names
	if v.Former != "" {
		names = append(slices.Clone(names), v.Former)
	}
	i := slices.IndexFunc(names, isSet)
	switch {
	case i < 0 && v.Refused != "" && isSet(v.Refused):
		return "", fmt.Errorf("environment variable %s: %s", v.Refused, v.Why)
	case i < 0:
		return "", nil
	}
	value, _ := env(names[i])
	if err := set(flags, f, value); err != nil {
		return "", fmt.Errorf("environment variable %s: %w", names[i], err)
	}
	return names[i], nil
}

// set gives a flag its value. The error of a bad value tells only its fault.
func set(flags *pflag.FlagSet, f *pflag.Flag, value string) error {
	err := flags.Set(f.Name, value)
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if _, ok := f.Value.(former); ok {
			return invalid.Unwrap()
		}
		return fmt.Errorf("%.64q is no %s: %s", value, typeName(f), plain(invalid.Unwrap()))
	}
	return err
}

// plain removes the name of the failed function of the standard library.
func plain(err error) string {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return strings.TrimPrefix(err.Error(), "time: ")
}

// Settled tells where the values of a command's flags are from.
type Settled struct {
	kind    Kind
	flags   *pflag.FlagSet
	file    string // as it was named; empty without a file
	origins map[string]origin
	// Warnings tell of variables with former names.
	Warnings []string
}

// origin is where a value is from; the zero value is the default.
type origin struct {
	flag     bool
	variable string
	line     int    // in the file
	preset   string // another setting with its value
}

// Settle sets the flags that the command line leaves alone from the environment.
// Remaining flags that are keys of the kind are set from the file. file may be nil. The
// error tells all faults at once.
//
// flags may hold more than the flags of the kind: commands that talk to a cluster have
// flags of their own beside shared flags.
func Settle(flags *pflag.FlagSet, kind Kind, file *File, env func(string) (string, bool)) (*Settled, error) {
	s := &Settled{kind: kind, flags: flags, origins: make(map[string]origin)}
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			s.origins[f.Name] = origin{flag: true}
			return
		}
		switch variable, err := kind.FromEnvironment(flags, f, env); {
		case err != nil:
			errs = append(errs, err)
		case variable != "":
			s.origins[f.Name] = origin{variable: variable}
			if v := kind.VariablesOf(f.Name); variable == v.Former {
				s.Warnings = append(s.Warnings, fmt.Sprintf("environment variable %s: a former name, read for the last time in this release; the name is %s", variable, v.Names[0]))
			}
		}
	})
	if file != nil {
		s.file = file.name
		section, ok := file.sections[kind.Name]
		if !ok && !kind.Optional {
			errs = append(errs, file.missing(kind))
		}
		errs = append(errs, s.take(section)...)
	}
	return s, errors.Join(errs...)
}

// take sets the flags that are not set yet from the section of a file.
func (s *Settled) take(section []entry) []error {
	var errs []error
	for _, e := range section {
		f := s.flags.Lookup(e.key)
		if f == nil || f.Changed {
			continue // no flag of this command, or set already
		}
		if err := e.set(s.flags, f); err != nil {
			errs = append(errs, &Error{File: s.file, Line: e.line, Key: s.kind.Name + "." + e.key, Problem: err.Error()})
			continue
		}
		s.origins[e.key] = origin{line: e.line}
	}
	return errs
}

// Fill gives the flags that nothing has set the values that the setting by implies.
func (s *Settled) Fill(by *pflag.Flag, values map[string]time.Duration) error {
	for name, value := range values {
		f := s.flags.Lookup(name)
		if f == nil || f.Changed {
			continue
		}
		if err := s.flags.Set(name, value.String()); err != nil {
			return fmt.Errorf("%s %s: %w", by.Name, by.Value, err)
		}
		s.origins[name] = origin{preset: by.Name + " " + by.Value.String()}
	}
	return nil
}

// Origin says where the value of a flag is from: "--data", "SAMYA_DATA", "site.yaml:3",
// "preset lan" or "default".
func (s *Settled) Origin(flag string) string {
	switch o := s.origins[flag]; {
	case o.flag:
		return "--" + flag
	case o.variable != "":
		return o.variable
	case o.line != 0:
		return fmt.Sprintf("%s:%d", s.file, o.line)
	case o.preset != "":
		return o.preset
	}
	return "default"
}

// Locate tells in an error where the settings at fault were set. It does so in each part
// of err that begins with the name of a setting from the file or the environment. The
// result matches every error that err matches.
func (s *Settled) Locate(err error) error {
	if s == nil || err == nil {
		return err
	}
	var lines []string
	changed := false
	for _, part := range parts(err, "") {
		at := s.place(part)
		changed = changed || at != part
		lines = append(lines, at)
	}
	if !changed {
		return err
	}
	return &locatedError{text: strings.Join(lines, "\n"), err: err}
}

// place returns an error's text with the place of its setting.
func (s *Settled) place(text string) string {
	key, problem := s.field(text)
	if key == "" {
		return text
	}
	name, _, _ := strings.Cut(key, "[")
	o, set := s.origins[name]
	switch {
	case o.variable != "":
		return fmt.Sprintf("%s: %s", o.variable, problem)
	case o.line != 0:
		return fmt.Sprintf("%s:%d: %s.%s: %s", s.file, o.line, s.kind.Name, key, problem)
	case !set && s.file != "":
		// The setting is not set, and could be set in the file.
		return fmt.Sprintf("%s: %s.%s: %s", s.file, s.kind.Name, key, problem)
	}
	return text
}

// field finds the key that an error is about, with the index in a list. Errors begin with
// their field and a colon, as "join[0]: …". A part of a setting follows the name of the
// whole: "gossip: key: …" is about gossip-key-file.
func (s *Settled) field(text string) (key, problem string) {
	words := strings.SplitN(text, ": ", 4)
	for n := len(words) - 1; n > 0; n-- {
		last, index, isList := strings.Cut(words[n-1], "[")
		if isList {
			index = "[" + index
		}
		whole := strings.Join(append(slices.Clone(words[:n-1]), last), "-")
		for _, key := range []string{whole, whole + "-file", last} {
			if key = strings.ReplaceAll(key, "_", "-"); s.kind.key(key) != nil {
				return key + index, strings.Join(words[n:], ": ")
			}
		}
	}
	return "", ""
}

// parts splits joined errors, each with the text before all of them.
func parts(err error, before string) []string {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var all []string
		for _, e := range many.Unwrap() {
			all = append(all, parts(e, before)...)
		}
		return all
	}
	if inner := errors.Unwrap(err); inner != nil {
		if head, ok := strings.CutSuffix(err.Error(), inner.Error()); ok {
			return parts(inner, before+head)
		}
	}
	return []string{before + err.Error()}
}

// locatedError is an error with a text that tells where its setting was set.
type locatedError struct {
	text string
	err  error
}

func (e *locatedError) Error() string { return e.text }
func (e *locatedError) Unwrap() error { return e.err }

// Error describes a fault of a key of a file.
type Error struct {
	// File is the file's name, as it was given.
	File string
	// Line counts from 1; 0 if no line is at fault.
	Line int
	// Key is the path of the key, as "site.data"; empty if the whole file is at fault.
	Key string
	// Problem is the fault.
	Problem string
}

// Error returns "file:line: key: problem".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	if e.Key != "" {
		b.WriteString(": " + e.Key)
	}
	return b.String() + ": " + e.Problem
}
