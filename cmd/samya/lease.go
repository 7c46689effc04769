package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/name"
)

// leaseCommand is `samya lease`.
func (p *program) leaseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lease",
		Short: "List, renew, commit and void leases",
		Long: `Leases are tokens held until a time: samya acquire --ttl grants them. A lease
that is neither renewed nor committed ends by itself, and its tokens come back.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	t := p.talk(cmd)
	cmd.AddCommand(t.leaseList(), t.leaseRenew(), t.leaseCommit(), p.leaseVoid(t))
	return cmd
}

func (t *talker) leaseList() *cobra.Command {
	var holder, entity string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List leases of all sites",
		Args:  exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			errs := []error{name.Holder("holder", holder)}
			if entity != "" {
				errs = append(errs, name.Entity("entity", entity))
			}
			if err := errors.Join(errs...); err != nil {
				return err
			}
			client, err := t.client()
			if err != nil {
				return err
			}
			all, err := leases(cmd.Context(), client, holder, entity)
			if err != nil {
				return err
			}
			return t.print(all, func(w io.Writer) {
				row(w, "NAME", "ENTITY", "TOKENS", "REMAINING", "HOLDER")
				for _, l := range all.Leases {
					row(w, l.Name, l.Entity, l.Tokens, time.Duration(l.RemainingMS)*time.Millisecond, l.Holder)
				}
				for _, site := range all.Missing {
					row(w, "Site "+site+" did not answer; its leases are missing.")
				}
			})
		},
	}
	cmd.Flags().StringVar(&holder, "holder", "", "only leases of this holder")
	cmd.Flags().StringVar(&entity, "entity", "", "only leases of this entity")
	return cmd
}

// leases returns the leases of all pages.
func leases(ctx context.Context, client *httpapi.Client, holder, entity string) (httpapi.LeasePage, error) {
	all := httpapi.LeasePage{Leases: []httpapi.Lease{}, Missing: []string{}}
	for token := ""; ; {
		var page httpapi.LeasePage
		err := within(ctx, 0, func(ctx context.Context) (err error) {
			page, err = client.ListLeases(ctx, holder, entity, name.MaxPageSize, token)
			return err
		})
		if err != nil {
			return all, fmt.Errorf("list leases: %w", err)
		}
		all.Leases = append(all.Leases, page.Leases...)
		all.Missing = append(all.Missing, page.Missing...)
		if token = page.NextPageToken; token == "" {
			return all, nil
		}
	}
}

func (t *talker) leaseRenew() *cobra.Command {
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:     "renew LEASE",
		Short:   "Give a lease another time to live from now on",
		Example: "  samya lease renew us/01JD2M5E4Z --ttl 1m",
		Args:    exactly("LEASE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, _, err := name.Lease("lease", args[0])
			given := ""
			if ttl != 0 {
				err, given = errors.Join(err, name.TTL("ttl", ttl)), ttl.String()
			}
			if err != nil {
				return err
			}
			client, err := t.client()
			if err != nil {
				return err
			}
			return within(cmd.Context(), 0, func(ctx context.Context) error {
				l, err := client.RenewLease(ctx, args[0], given)
				if err != nil {
					return fmt.Errorf("renew %s: %w", args[0], err)
				}
				return t.print(l, func(w io.Writer) {
					row(w, fmt.Sprintf("lease %s of %d of %s ends in %s", l.Name, l.Tokens, l.Entity, time.Duration(l.RemainingMS)*time.Millisecond))
				})
			})
		},
	}
	cmd.Flags().DurationVar(&ttl, "ttl", 0, "life of the lease, 1s to 168h (default: as long as before)")
	return cmd
}

func (t *talker) leaseCommit() *cobra.Command {
	var tokens int64
	var requestID string
	cmd := &cobra.Command{
		Use:     "commit LEASE",
		Short:   "Keep tokens of a lease for good and give the rest back",
		Example: "  samya lease commit us/01JD2M5E4Z --tokens 2",
		Args:    exactly("LEASE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if requestID == "" {
				requestID = ulid.Make().String()
			}
			_, _, err := name.Lease("lease", args[0])
			if err := errors.Join(err, name.Released("tokens", tokens, 0), name.RequestID("request-id", requestID)); err != nil {
				return err
			}
			client, err := t.client()
			if err != nil {
				return err
			}
			return within(cmd.Context(), 0, func(ctx context.Context) error {
				m, err := client.CommitLease(ctx, args[0], tokens, requestID)
				if err != nil {
					return hinted(fmt.Errorf("commit %s: %w", args[0], err),
						fmt.Sprintf("find out with: samya lease commit %s --tokens %d --request-id %s", args[0], tokens, requestID))
				}
				return t.print(m, func(w io.Writer) {
					row(w, fmt.Sprintf("kept %d of lease %s, gave %d back", m.Tokens, m.Lease, m.Returned))
				})
			})
		},
	}
	cmd.Flags().Int64Var(&tokens, "tokens", 0, "how many to keep (default: all that it holds)")
	cmd.Flags().StringVar(&requestID, "request-id", "", requestIDUsage)
	return cmd
}

// leaseVoid is `samya lease void`, a release of all tokens of a lease.
func (p *program) leaseVoid(t *talker) *cobra.Command {
	m := &move{talker: t, verb: "release", done: "released"}
	cmd := &cobra.Command{
		Use:     "void LEASE --entity NAME",
		Short:   "Give all that a lease holds back",
		Example: "  samya lease void us/01JD2M5E4Z --entity acme/vm",
		Args:    exactly("LEASE"),
	}
	var entity string
	m.flags(cmd)
	cmd.Flags().StringVar(&entity, "entity", "", "name of the lease's entity")
	must(cmd.MarkFlagRequired("entity"))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		m.lease = args[0]
		return m.run(cmd, []string{entity, "0"})
	}
	return cmd
}
