package main

import (
	"cmp"
	_ "embed" // the words around the table
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/samya-db/samya/internal/settings"
)

// prefixes begin the variables of each kind of process. Other commands have
// [settings.DefaultPrefix].
var prefixes = map[string]string{
	kindSite:   "SAMYA_SITE_",
	kindAppmgr: "SAMYA_APPMGR_",
	kindClient: "SAMYA_CLIENT_",
}

// scoped are the flags with another meaning in each command. Their variables name the
// command: as many words of its name as the number says, as in SAMYA_LEASE_LIST_ENTITY.
var scoped = map[string]int{"dir": 1, "entity": 2, "holder": 1, "keep": 1, "site": 2}

// variables returns the variables of the flags of a command: of a kind of process, or with
// kind "" of a command without a file of settings. path is the command's name, without
// samya. servers are the flags of sites and app managers, shared those of all clients.
func variables(kind, path string, servers, shared map[string]bool) func(flag string) settings.Variables {
	return func(flag string) settings.Variables {
		own, general := settings.Variable(prefixes[kind], flag), settings.Variable(settings.DefaultPrefix, flag)
		words, isScoped := scoped[flag]
		switch {
		case kind == kindSite || kind == kindAppmgr:
			return settings.Variables{Names: []string{own}, Former: general}
		case isScoped:
			name := settings.Variable(settings.DefaultPrefix, strings.ReplaceAll(firstWords(path, words), " ", "-")+"-"+flag)
			return settings.Variables{Names: []string{name}, Refused: general, Why: fmt.Sprintf("--%s has another meaning in each command; the name for samya %s is %s", flag, path, name)}
		case kind == "":
			return settings.Variables{Names: []string{general}}
		case servers[flag] && shared[flag]:
			why := fmt.Sprintf("the name for commands that talk to a cluster is %s, for a site %s, for an app manager %s", own, settings.Variable(prefixes[kindSite], flag), settings.Variable(prefixes[kindAppmgr], flag))
			return settings.Variables{Names: []string{own}, Refused: general, Why: why}
		case servers[flag]:
			return settings.Variables{Names: []string{own}}
		default:
			return settings.Variables{Names: []string{own, general}}
		}
	}
}

// firstWords returns the first n words of a command's name.
func firstWords(path string, n int) string {
	words := strings.Fields(path)
	return strings.Join(words[:min(n, len(words))], " ")
}

// variablesOf is [variables] for a command. The kinds tell the flags of all processes.
func variablesOf(kinds []settings.Kind, kind, path string) func(flag string) settings.Variables {
	servers, shared := make(map[string]bool), make(map[string]bool)
	for _, k := range kinds {
		for _, f := range k.Keys() {
			if k.Name == kindClient {
				shared[f.Name] = true
			} else {
				servers[f.Name] = true
			}
		}
	}
	return variables(kind, path, servers, shared)
}

// pathOf is a command's name, without samya.
func pathOf(cmd *cobra.Command) string {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	return path
}

// variable is a variable of the environment that a command reads.
type variable struct {
	name, command string
	flag          *pflag.Flag
	former        bool // of the variable or the flag
}

// variables returns the variables of all commands, sorted.
func (p *program) variables() []variable {
	var all []variable
	kinds := p.kinds()
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for _, below := range c.Commands() {
			visit(below)
		}
		path := pathOf(c)
		if !c.Runnable() || strings.HasPrefix(path, "config show ") {
			return // a command that shows settings reads the variables of what it shows
		}
		k := settings.Kind{Variables: variablesOf(kinds, p.kindWithFile(c), path)}
		c.Flags().AddFlagSet(c.InheritedFlags())
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !settings.HasVariable(f) || f.Name == "version" {
				return
			}
			v := k.VariablesOf(f.Name)
			for _, name := range v.Names {
				all = append(all, variable{name, path, f, f.Hidden})
			}
			if v.Former != "" {
				all = append(all, variable{v.Former, path, f, true})
			}
		})
	}
	visit(p.root())
	slices.SortFunc(all, func(a, b variable) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.command, b.command))
	})
	return all
}

// kindWithFile is [kindOf] for a command with --config, and empty for another.
func (p *program) kindWithFile(cmd *cobra.Command) string {
	if cmd.Flag(settings.ConfigFlag) == nil {
		return ""
	}
	return kindOf(cmd)
}

// serviceLink matches the variables that Kubernetes sets for services named samya or
// samya-…; nobody mistyped them.
var serviceLink = regexp.MustCompile(`_(SERVICE_(HOST|PORT)|PORT(_[0-9]+_(TCP|UDP))?)`)

// unknownMost bounds the variables that a warning names.
const unknownMost = 10

// unknownVariables returns warnings of the variables of the environment that begin with
// SAMYA_ and that no command reads. kind is the process that warns. Values may be secrets
// and are not told.
func (p *program) unknownVariables(kind string) []string {
	if p.environ == nil {
		return nil
	}
	known := map[string]bool{}
	var own []string
	for _, v := range p.variables() {
		known[v.name] = true
		if v.command == kind && !v.former {
			own = append(own, v.name)
		}
	}
	var unknown []string
	for _, text := range p.environ() {
		name, value, _ := strings.Cut(text, "=")
		if strings.HasPrefix(name, settings.DefaultPrefix) && value != "" && !known[name] && !serviceLink.MatchString(name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	more := ""
	if len(unknown) > unknownMost {
		more = fmt.Sprintf("%d further environment variables that begin with SAMYA_: no command of samya reads them", len(unknown)-unknownMost)
		unknown = unknown[:unknownMost]
	}
	var warnings []string
	for _, name := range unknown {
		hint := "docs/configuration.md lists all names"
		if near := settings.Near(name, own); near != "" {
			hint = "did you mean " + near + "?"
		}
		warnings = append(warnings, fmt.Sprintf("environment variable %.64s: no command of samya reads it; %s", name, hint))
	}
	if more != "" {
		warnings = append(warnings, more)
	}
	return warnings
}

//go:embed variables.txt
var variablesText string

// variableReference writes the part of docs/configuration.md about variables.
func (p *program) variableReference() error {
	var b strings.Builder
	b.WriteString(variablesText)
	told := make(map[string]bool)
	for _, v := range p.variables() {
		if words, isScoped := scoped[v.flag.Name]; isScoped && !told[v.name] {
			told[v.name] = true
			meaning := v.flag.Usage
			if i := strings.IndexAny(meaning, ":,("); i > 0 {
				meaning = strings.TrimSpace(meaning[:i])
			}
			fmt.Fprintf(&b, "| `%s` | `--%s` of `samya %s` | %s |\n", v.name, v.flag.Name, firstWords(v.command, words), meaning)
		}
	}
	if _, err := io.WriteString(p.stdout, b.String()); err != nil {
		return fmt.Errorf("write the reference: %w", err)
	}
	return nil
}
