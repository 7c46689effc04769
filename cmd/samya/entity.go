package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/settings"
)

// entityCommand is `samya entity`.
func (p *program) entityCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "entity",
		Short: "Create, read, change and delete entities",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	t := p.talk(cmd)
	cmd.AddCommand(t.entityCreate(), t.entityGet(), t.entityWatch(), t.entityList(), t.entityTree(), t.entitySetLimit(), t.entityReconcile(), t.entityReset(), t.entityMove(), t.entityDelete())
	return cmd
}

func (t *talker) entityCreate() *cobra.Command {
	var limit int64
	var parent, requestID string
	var quota rateFlags
	cmd := &cobra.Command{
		Use:     "create NAME {--limit N | --rate N/PERIOD}",
		Short:   "Create an entity",
		Example: "  samya entity create acme --limit 5000\n  samya entity create acme/vm --limit 1000 --parent acme\n  samya entity create llm/acme --rate 2000000/day --time-zone Europe/Berlin\n  samya entity create calls/acme --rate 100/s --kind bucket --burst 20",
		Args:    exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if requestID == "" {
				requestID = ulid.Make().String()
			}
			e, err := quota.creation(limit, cmd.Flags())
			e.Name, e.Parent, e.RequestID = args[0], parent, requestID
			if err := errors.Join(
				name.Entity("name", args[0]), err, name.Limit("limit", e.Limit), name.Parent("parent", parent), name.RequestID("request-id", requestID),
			); err != nil {
				return err
			}
			client, err := t.client()
			if err != nil {
				return err
			}
			return within(cmd.Context(), 0, func(ctx context.Context) error {
				e, err := client.Create(ctx, e)
				if err != nil {
					err = fmt.Errorf("create %s: %w", args[0], err)
					if !doubtful(err) {
						return err
					}
					// Without the id a repeat could fail because the entity exists
					// already.
					again := "find out with: samya entity create " + args[0]
					cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
						switch {
						case !f.Changed || f.Name == "request-id":
						case f.Value.Type() == "bool":
							again += " --" + f.Name + "=" + f.Value.String()
						default:
							again += " --" + f.Name + " " + f.Value.String()
						}
					})
					return &hintError{err, again + " --request-id " + requestID}
				}
				return t.print(e, func(w io.Writer) {
					below := ""
					if e.Parent != "" {
						below = " below " + e.Parent
					}
					row(w, fmt.Sprintf("created %s with limit %d%s%s", e.Name, e.Limit, inPeriods(&e), below))
				})
			})
		},
	}
	cmd.Flags().Int64Var(&limit, "limit", 0, "limit of the entity: most tokens that may be out at once")
	cmd.Flags().StringVar(&parent, "parent", "", "entity to stand below: what is acquired of this one is acquired of that one too (default: none)")
	quota.add(cmd.Flags())
	cmd.Flags().StringVar(&requestID, "request-id", "", requestIDUsage)
	return cmd
}

func (t *talker) entityGet() *cobra.Command {
	var consistency string
	var maxAge time.Duration
	cmd := &cobra.Command{
		Use:               "get NAME",
		Short:             "Show an entity and its books, site by site",
		Args:              exactly("NAME"),
		ValidArgsFunction: t.completeEntities,
		RunE: func(cmd *cobra.Command, args []string) error {
			errs := []error{name.Entity("name", args[0]), name.Age("max-age", maxAge)}
			if consistency != "" && !slices.Contains(consistencies, consistency) {
				errs = append(errs, &name.Error{Field: "consistency", Problem: "must be one of " + strings.Join(consistencies, ", ")})
			}
			if err := errors.Join(errs...); err != nil {
				return err
			}
			client, err := t.client()
			if err != nil {
				return err
			}
			return within(cmd.Context(), 0, func(ctx context.Context) error {
				s, err := client.ReadEntity(ctx, args[0], consistency, maxAge)
				if err != nil {
					return fmt.Errorf("read %s: %w", args[0], err)
				}
				return t.print(honestly(s), func(w io.Writer) { printStatus(w, s) })
			})
		},
	}
	cmd.Flags().StringVar(&consistency, "consistency", "", "what to be content with: local (one site), bounded (what one site has heard of the others) or exact (all sites are asked) (default exact)")
	cmd.Flags().DurationVar(&maxAge, "max-age", 0, "bounded: how old figures may be, at most 1h (default 5s)")
	must(cmd.RegisterFlagCompletionFunc("consistency", cobra.FixedCompletions(consistencies, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

// consistencies are the consistencies of a read.
var consistencies = []string{"local", "bounded", "exact"}

// printStatus prints an entity and its books.
func printStatus(w io.Writer, s httpapi.Status) {
	row(w, "NAME", "LIMIT", "AVAILABLE", "ACQUIRED", "IN TRANSIT", "VERSION")
	transit := fmt.Sprint(s.InTransit)
	if !s.Complete {
		transit = "?"
	}
	row(w, s.Name, s.Limit, s.Available, s.Acquired, transit, s.Version)
	if s.Per != "" {
		row(w)
		row(w, howRated(&s.Entity, s.WindowEndsMS))
	}
	if s.Parent != "" || s.Children > 0 {
		row(w)
		row(w, fmt.Sprintf("Stands %s; entities right below it: %d.", where(s.Parent), s.Children))
	}
	row(w)
	row(w, "SITE", "LEFT", "OFFERED", "ACQUIRED", "WAITING", "REDISTRIBUTIONS", "TRANSFERS", "AGE")
	for _, share := range s.Shares {
		if !share.Known {
			row(w, share.Site, "?", "?", "?", "?", "?", "?", "never seen")
			continue
		}
		age := (time.Duration(share.AgeMS) * time.Millisecond).String()
		row(w, share.Site, share.Left, share.Offered, share.Net, share.Waiting, share.Redistributions, share.Transfers, age)
	}
	if s.Debt > 0 || s.Surplus > 0 {
		row(w)
		row(w, fmt.Sprintf("Debt %d; surplus kept out of circulation %d.", s.Debt, s.Surplus))
	}
	if s.WrittenOff != 0 {
		row(w)
		row(w, fmt.Sprintf("Written off with lost sites, and out of circulation until it is reconciled: %d.", s.WrittenOff))
	}
	if s.MayExceedBy > 0 {
		row(w)
		row(w, mayExceed(s.MayExceedBy))
	}
	if !s.Complete {
		row(w)
		row(w, "Not every site answered; the sums are over the shares seen.")
	}
	if over := s.Available + s.Acquired + s.Surplus + s.WrittenOff - s.Limit; over > 0 {
		row(w)
		row(w, fmt.Sprintf("The shares add up to %d more than the limit: they are of different ages, and count some tokens twice.", over))
	}
}

func (t *talker) entityWatch() *cobra.Command {
	var token string
	cmd := &cobra.Command{
		Use:   "watch NAME",
		Short: "Show an entity's state and each later one, as one site sees it",
		Long: `Shows an entity's state and each later one until the entity is deleted or the
command is interrupted: at most ten a second, states between two may be left out.
With --json each state is a line with a resume_token, which --resume-token takes.`,
		Args:              exactly("NAME"),
		ValidArgsFunction: t.completeEntities,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := name.Entity("name", args[0]); err != nil {
				return err
			}
			client, err := t.client()
			if err != nil {
				return err
			}
			err = client.WatchEntity(cmd.Context(), args[0], token, func(s httpapi.State) error {
				return t.printState(s)
			})
			switch {
			case errors.Is(context.Cause(cmd.Context()), errInterrupted):
				return errInterrupted
			case err != nil:
				return fmt.Errorf("watch %s: %w", args[0], err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&token, "resume-token", "", "go on behind this state (default: begin with the present one)")
	return cmd
}

// printState prints a state of a watch as a line.
func (t *talker) printState(s httpapi.State) error {
	var err error
	switch {
	case t.json:
		err = json.NewEncoder(t.program.stdout).Encode(honestState{honestly(s.Status), s.Deleted, s.ResumeToken})
	case s.Deleted:
		_, err = fmt.Fprintf(t.program.stdout, "%s was deleted\n", s.Name)
	default:
		_, err = fmt.Fprintf(t.program.stdout, "%s: limit %d, available %d, acquired %d (version %d)\n",
			s.Name, s.Limit, s.Available, s.Acquired, s.Version)
	}
	if err != nil {
		return fmt.Errorf("print the state: %w", err)
	}
	return nil
}

func (t *talker) entityList() *cobra.Command {
	var prefix string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List entities",
		Args:  exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := name.Prefix("prefix", prefix); err != nil {
				return err
			}
			client, err := t.client()
			if err != nil {
				return err
			}
			entities, err := list(cmd.Context(), client, prefix)
			if err != nil {
				return err
			}
			return t.print(map[string]any{"entities": entities}, func(w io.Writer) {
				row(w, "NAME", "LIMIT", "VERSION")
				for _, e := range entities {
					row(w, e.Name, e.Limit, e.Version)
				}
			})
		},
	}
	cmd.Flags().StringVar(&prefix, "prefix", "", "only entities whose names start with this")
	return cmd
}

// list returns the entities of all pages.
func list(ctx context.Context, client *httpapi.Client, prefix string) ([]httpapi.Entity, error) {
	entities := []httpapi.Entity{}
	for token := ""; ; {
		var page httpapi.Page
		err := within(ctx, 0, func(ctx context.Context) (err error) {
			page, err = client.ListEntities(ctx, prefix, name.MaxPageSize, token)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("list entities: %w", err)
		}
		entities = append(entities, page.Entities...)
		if token = page.NextPageToken; token == "" {
			return entities, nil
		}
	}
}

func (t *talker) entitySetLimit() *cobra.Command {
	var change httpapi.Change
	cmd := &cobra.Command{
		Use:   "set-limit NAME N",
		Short: "Change an entity's limit",
		Long: `Changes an entity's limit, as a majority of the sites decides. A site that is cut off
goes by the old limit until it is back: the result tells by how many tokens the new one
may be exceeded for that reason. With --wait-applied the command ends once all sites have applied
the change, and fails if that takes longer than 10 s. The change stands all the same.`,
		Example:           "  samya entity set-limit acme/vm 1000\n  samya entity set-limit acme/vm 100 --wait-applied",
		Args:              exactly("NAME", "N"),
		ValidArgsFunction: t.completeEntities,
		RunE: func(cmd *cobra.Command, args []string) error {
			limit, err := count("limit", args[1])
			if err != nil {
				return err
			}
			if change.RequestID == "" {
				change.RequestID = ulid.Make().String()
			}
			if err := errors.Join(
				name.Entity("name", args[0]), name.Limit("limit", limit), name.RequestID("request-id", change.RequestID),
			); err != nil {
				return err
			}
			client, err := t.client()
			if err != nil {
				return err
			}
			change.Limit = limit
			return within(cmd.Context(), 0, func(ctx context.Context) error { return t.setLimit(ctx, client, args[0], change) })
		},
	}
	cmd.Flags().Uint64Var(&change.ExpectedVersion, "expected-version", 0, "change only from this version; 0: any")
	settings.FormerOfAnother(cmd.Flags(), "wait", "wait-applied")
	cmd.Flags().BoolVar(&change.WaitApplied, "wait-applied", false, "wait until all sites have applied the change, 10 s at most")
	cmd.Flags().StringVar(&change.RequestID, "request-id", "", requestIDUsage)
	return cmd
}

// setLimit changes a limit and prints the result.
func (t *talker) setLimit(ctx context.Context, client *httpapi.Client, entity string, change httpapi.Change) error {
	again := fmt.Sprintf("samya entity set-limit %s %d --request-id %s", entity, change.Limit, change.RequestID)
	if change.ExpectedVersion != 0 {
		again += fmt.Sprintf(" --expected-version %d", change.ExpectedVersion)
	}
	e, err := client.UpdateEntity(ctx, entity, change)
	if err != nil {
		err = fmt.Errorf("change the limit of %s: %w", entity, err)
		if doubtful(err) {
			return &hintError{err, "find out with: " + again}
		}
		return err
	}
	if err := t.print(e, func(w io.Writer) {
		row(w, fmt.Sprintf("the limit of %s is now %d (version %d)", e.Name, e.Limit, e.Version))
		if e.MayExceedBy > 0 {
			row(w, mayExceed(e.MayExceedBy))
		}
	}); err != nil || !change.WaitApplied || len(e.MissingSites) == 0 {
		return err
	}
	return &hintError{
		fmt.Errorf("the limit of %s is changed, but these sites are not known to have applied it: %s", e.Name, strings.Join(e.MissingSites, ", ")),
		"wait further with: " + again + " --wait-applied",
	}
}

// mayExceed says by how much the tokens out may exceed a limit.
func mayExceed(by int64) string {
	return fmt.Sprintf("Until all sites have heard of this limit, it may be exceeded by %d at most.", by)
}

func (t *talker) entityDelete() *cobra.Command {
	var yes, subtree bool
	cmd := &cobra.Command{
		Use:               "delete NAME",
		Short:             "Delete an entity; its tokens that are out are forgotten",
		Args:              exactly("NAME"),
		ValidArgsFunction: t.completeEntities,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := name.Entity("name", args[0]); err != nil {
				return err
			}
			client, err := t.client()
			if err != nil {
				return err
			}
			what, remove := args[0], client.DeleteEntity
			question := "Delete " + what + "? Its tokens that are out are forgotten. [y/N] "
			if subtree {
				what, remove = what+" and all below it", client.DeleteSubtree
				question = "Delete " + what + "? Their tokens that are out are forgotten. [y/N] "
			}
			if !yes {
				if err := t.confirm(question, "pass --yes to delete without being asked", "nothing was deleted"); err != nil {
					return err
				}
			}
			return within(cmd.Context(), 0, func(ctx context.Context) error {
				if err := remove(ctx, args[0]); err != nil {
					return fmt.Errorf("delete %s: %w", args[0], err)
				}
				return t.print(map[string]any{"deleted": args[0]}, func(w io.Writer) { row(w, "deleted "+what) })
			})
		},
	}
	cmd.Flags().BoolVar(&subtree, "subtree", false, "delete all that stands below it as well")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// confirm asks a question, and fails unless the answer is yes. The hint is for a caller that
// cannot answer; nothing says what was not done.
func (t *talker) confirm(question, hint, nothing string) error {
	_, _ = fmt.Fprint(t.program.stderr, question) // an unseen question gets no answer
	line, err := bufio.NewReader(t.program.stdin).ReadString('\n')
	if err != nil && line == "" {
		return &hintError{fmt.Errorf("read the answer: %w", err), hint}
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return errors.New(nothing)
}
