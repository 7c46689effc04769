package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/settings"
)

const (
	// defaultAddr is the default HTTP address of an app manager.
	defaultAddr = "http://127.0.0.1:8080"
	// completionTimeout bounds the wait for names during a shell's completion.
	completionTimeout = time.Second
	// requestTimeout is the time that a request may take beyond its wait.
	requestTimeout = 20 * time.Second
)

// talker holds the flags that commands share that talk to a cluster.
type talker struct {
	program *program
	addr    string
	json    bool
	secrets secrets
}

// talk makes cmd a command that talks to a cluster, and defines the flags of such
// commands.
func (p *program) talk(cmd *cobra.Command) *talker {
	t := &talker{program: p}
	settingsOf(cmd, kindClient)
	configFlag(cmd.PersistentFlags())
	cmd.PersistentFlags().StringVar(&t.addr, "addr", defaultAddr, "HTTP address of an app manager; https://… for TLS")
	t.secrets.flags(cmd.PersistentFlags())
	cmd.PersistentFlags().BoolVar(&t.json, "json", false, jsonUsage)
	settings.Former(cmd.PersistentFlags(), "output,o", "json")
	if cmd.GroupID == "" {
		cmd.GroupID = groupTalk
	}
	return t
}

// jsonUsage describes the flag --json.
const jsonUsage = "print JSON"

// requestIDUsage describes the flag --request-id.
const requestIDUsage = "id of the request, to repeat one of unknown outcome (default: a new one)"

// must panics on an error that only a mistake in this program can cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// client checks the shared flags and returns a client.
func (t *talker) client() (*httpapi.Client, error) {
	addr, transport, err := t.secrets.transport(t.addr)
	if err != nil {
		return nil, err
	}
	client, err := httpapi.New(addr, transport)
	if err != nil {
		return nil, &usageError{fmt.Errorf("addr: %w", err)}
	}
	return client, nil
}

// print prints a result: as JSON, or with the function text.
func (t *talker) print(result any, text func(w io.Writer)) error {
	w := t.program.stdout
	if t.json {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		if err := e.Encode(result); err != nil {
			return fmt.Errorf("print the result: %w", err)
		}
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	text(table)
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}

// row writes a row of a table. The table's Flush returns its errors.
func row(w io.Writer, cells ...any) {
	for i, c := range cells {
		if i > 0 {
			_, _ = io.WriteString(w, "\t")
		}
		_, _ = fmt.Fprint(w, c)
	}
	_, _ = io.WriteString(w, "\n")
}

// completeEntities completes the name of an entity.
func (t *talker) completeEntities(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return t.complete(cmd, func(ctx context.Context, client *httpapi.Client) (names []string, err error) {
		page, err := client.ListEntities(ctx, toComplete, 0, "")
		for _, e := range page.Entities {
			names = append(names, e.Name)
		}
		return names, err
	})
}

// completeMembers completes the name of a site that may leave.
func (t *talker) completeMembers(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return t.completeAnyMember(cmd, nil, toComplete)
}

// completeAnyMember completes the name of a site that has not left.
func (t *talker) completeAnyMember(cmd *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	return t.complete(cmd, func(ctx context.Context, client *httpapi.Client) (names []string, err error) {
		all, err := client.ListMembers(ctx)
		for _, m := range all.Members {
			if m.State != "gone" && m.State != "lost" && strings.HasPrefix(m.Name, toComplete) {
				names = append(names, m.Name)
			}
		}
		return names, err
	})
}

// complete asks an app manager for the words that complete a command; for none if it does
// not answer.
func (t *talker) complete(cmd *cobra.Command, ask func(context.Context, *httpapi.Client) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	if t.program.settle(cmd) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	client, err := t.client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	names, err := ask(ctx, client)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// exactly checks the number of arguments, and names the arguments if it is wrong.
func exactly(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		want := "no arguments"
		if len(names) > 0 {
			want = strings.Join(names, " ")
		}
		noun := "arguments"
		if len(args) == 1 {
			noun = "argument"
		}
		return &usageError{fmt.Errorf("%d %s, want %s", len(args), noun, want)}
	}
}

// count parses a number of tokens.
func count(field, s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, &usageError{fmt.Errorf("%s: %q is not a whole number", field, s)}
	}
	return n, nil
}

// within bounds a request to its wait and requestTimeout. The error of an interrupted
// request matches errInterrupted.
func within(ctx context.Context, wait time.Duration, f func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, wait+requestTimeout)
	defer cancel()
	err := f(bounded)
	if err != nil && errors.Is(context.Cause(ctx), errInterrupted) {
		return errors.Join(errInterrupted, err)
	}
	return err
}
