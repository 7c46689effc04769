package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/inspection"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// watchEvery is the default interval of a watch.
const watchEvery = 2 * time.Second

// clearScreen clears a terminal.
const clearScreen = "\x1b[H\x1b[2J"

// inspector is `samya site inspect`.
type inspector struct {
	*talker
	site  string
	over  time.Duration
	watch bool
}

// siteInspect is `samya site inspect`.
func (p *program) siteInspect() *cobra.Command {
	in := &inspector{}
	cmd := &cobra.Command{
		Use:   "inspect",
		Short: "Show what the partitions of the sites do",
		Long: `Shows for each site how its entities lie in partitions: what each partition has to
do, how many requests were of several partitions or had to be served alone, how
often entities were assigned anew and how long requests stood still for it, and
which entities are split over the partitions.

Counts are since the site was started; with --over or --watch those of the time
between two looks.`,
		Example: "  samya site inspect\n  samya site inspect --site us --over 5s\n  samya site inspect --site 10.0.0.1:7001 --json",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if in.over < 0 {
				return &usageError{fmt.Errorf("over: %s, must not be below 0s", in.over)}
			}
			look, err := in.look()
			if err != nil {
				return err
			}
			err = in.run(cmd.Context(), look)
			if errors.Is(context.Cause(cmd.Context()), errInterrupted) {
				return errInterrupted
			}
			return err
		},
	}
	in.talker = p.talk(cmd)
	f := cmd.Flags()
	f.StringVar(&in.site, "site", "", "only this site: its name, which the app manager asks, or its gRPC address as host:port, which is asked itself")
	f.DurationVar(&in.over, "over", 0, "tell what was done in so long from now on (default: since the start of each site)")
	f.BoolVar(&in.watch, "watch", false, "go on until interrupted, every --over (default 2s)")
	return cmd
}

// look returns the function that asks the sites.
func (in *inspector) look() (func(context.Context) (inspection.Status, error), error) {
	client, err := in.client()
	if err != nil {
		return nil, err
	}
	if strings.Contains(in.site, ":") {
		return func(ctx context.Context) (inspection.Status, error) { return inspectAt(ctx, in.site, &in.secrets) }, nil
	}
	if in.site != "" {
		if err := name.Site("site", in.site); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) (inspection.Status, error) { return client.InspectSites(ctx, in.site) }, nil
}

// run asks once, twice, or until ctx ends.
func (in *inspector) run(ctx context.Context, ask func(context.Context) (inspection.Status, error)) error {
	look := func() (s inspection.Status, err error) {
		err = within(ctx, 0, func(ctx context.Context) error {
			s, err = ask(ctx)
			if err != nil {
				return fmt.Errorf("inspect the sites: %w", err)
			}
			return nil
		})
		return s, err
	}
	before, err := look()
	if err != nil {
		return err
	}
	every := in.over
	if in.watch && every == 0 {
		every = watchEvery
	}
	if in.over == 0 {
		if err := in.show(before, true); err != nil || !in.watch {
			return err
		}
	}
	for first := in.over != 0; ; first = false {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(every):
		}
		now, err := look()
		if err != nil {
			return err
		}
		if err := in.show(now.Since(before), first); err != nil || !in.watch {
			return err
		}
		before = now
	}
}

// show prints the answer of the sites. A watch prints lines of JSON, or texts: a
// terminal shows only the latest text, other outputs show all.
func (in *inspector) show(s inspection.Status, first bool) error {
	w := in.program.stdout
	if in.watch && in.json {
		if err := json.NewEncoder(w).Encode(s); err != nil {
			return fmt.Errorf("print the sites: %w", err)
		}
		return nil
	}
	if in.watch && isTerminal(w) {
		_, _ = io.WriteString(w, clearScreen) // the write after it returns the error
	} else if !first {
		_, _ = io.WriteString(w, "\n")
	}
	return in.print(s, func(w io.Writer) { printInspection(w, s) })
}

// siteUnreachableError says that no site answers at an address.
type siteUnreachableError struct {
	addr string
	err  error
}

func (e *siteUnreachableError) Error() string {
	return fmt.Sprintf("no site answers at %s: %v", e.addr, e.err)
}
func (e *siteUnreachableError) Unwrap() error { return e.err }

// inspectAt asks a site by its gRPC address.
func inspectAt(ctx context.Context, addr string, secrets *secrets) (inspection.Status, error) {
	conn, err := dialSite(addr, secrets)
	if err != nil {
		return inspection.Status{}, err
	}
	// The connection served a single call, which has ended.
	defer func() { _ = conn.Close() }()
	m, err := samyav1.NewClusterServiceClient(conn).InspectSites(ctx, &samyav1.InspectSitesRequest{})
	if err != nil {
		return inspection.Status{}, siteFailed(addr, "does not tell of partitions", err)
	}
	return inspection.Of(m), nil
}

// dialSite returns a connection to a site's gRPC address.
func dialSite(addr string, secrets *secrets) (*grpc.ClientConn, error) {
	opts, err := secrets.dial(addr)
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("passthrough:///"+addr, append(opts, grpc.WithNoProxy())...)
	if err != nil {
		return nil, &usageError{fmt.Errorf("site: address %q: %w", addr, err)}
	}
	return conn, nil
}

// siteFailed explains the error of a call at a site's address. An error that is not of
// gRPC stays as it is. lacks says what a server does that does not know the call.
func siteFailed(addr, lacks string, err error) error {
	st, ok := status.FromError(err)
	switch {
	case !ok:
		return err
	case len(st.Details()) > 0:
		e := apierr.FromGRPC(err)
		e.Err = nil // it says the same once more
		return e
	case st.Code() == codes.Unimplemented:
		return &hintError{
			fmt.Errorf("%s %s: %s", addr, lacks, st.Message()),
			"--site must be the name of a site, or the gRPC address of one of this version",
		}
	}
	return &siteUnreachableError{addr: addr, err: errors.New(st.Message())}
}
