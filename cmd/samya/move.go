package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/name"
)

// defaultWait is how long `samya acquire` waits for tokens unless told otherwise.
const defaultWait = 5 * time.Second

// acquireCommand is `samya acquire`.
func (p *program) acquireCommand() *cobra.Command {
	m := &move{verb: "acquire", done: "acquired"}
	cmd := &cobra.Command{
		Use:     "acquire NAME N",
		Short:   "Acquire tokens of an entity",
		Example: "  samya acquire acme/vm 3 --wait 2s",
		Args:    exactly("NAME", "N"),
		RunE:    m.run,
	}
	cmd.Flags().DurationVar(&m.wait, "wait", defaultWait, "how long to wait for tokens of other sites, at most 60s")
	m.setUp(p, cmd)
	return cmd
}

// releaseCommand is `samya release`.
func (p *program) releaseCommand() *cobra.Command {
	m := &move{verb: "release", done: "released"}
	cmd := &cobra.Command{
		Use:     "release NAME N",
		Short:   "Give tokens of an entity back",
		Example: "  samya release acme/vm 3",
		Args:    exactly("NAME", "N"),
		RunE:    m.run,
	}
	m.setUp(p, cmd)
	return cmd
}

// move is an acquire or a release.
type move struct {
	*talker
	verb, done string
	wait       time.Duration
	requestID  string
	site       string
}

func (m *move) setUp(p *program, cmd *cobra.Command) {
	m.talker = p.talk(cmd)
	cmd.ValidArgsFunction = m.completeEntities
	cmd.Flags().StringVar(&m.requestID, "request-id", "", "name of the request; a repeat moves nothing (default: made up)")
	cmd.Flags().StringVar(&m.site, "site", "", "site that must answer (default: any)")
}

func (m *move) run(cmd *cobra.Command, args []string) error {
	entity := args[0]
	tokens, err := count("tokens", args[1])
	if err != nil {
		return err
	}
	if m.requestID == "" {
		m.requestID = ulid.Make().String()
	}
	errs := []error{
		name.Entity("name", entity), name.Tokens("tokens", tokens), name.Wait("wait", m.wait), name.RequestID("request-id", m.requestID),
	}
	if m.site != "" {
		errs = append(errs, name.Site("site", m.site))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	client, err := m.client()
	if err != nil {
		return err
	}
	body := httpapi.Request{Tokens: tokens, RequestID: m.requestID, Site: m.site}
	send := client.Release
	if m.verb == "acquire" {
		body.Wait = m.wait.String()
		send = client.Acquire
	}
	return within(cmd.Context(), m.wait, func(ctx context.Context) error {
		moved, err := send(ctx, entity, body)
		if err != nil {
			return m.hint(entity, tokens, fmt.Errorf("%s %d of %s: %w", m.verb, tokens, entity, err))
		}
		return m.print(moved, func(w io.Writer) {
			row(w, fmt.Sprintf("%s %d of %s at %s; %d left there", m.done, moved.Tokens, entity, moved.Site, moved.Left))
		})
	})
}

// hint tells how to find out what became of a request whose outcome is unknown.
func (m *move) hint(entity string, tokens int64, err error) error {
	site := m.site
	answer, refused := errors.AsType[*apierr.Error](err)
	switch {
	case refused && answer.Reason.NothingDone():
		return err
	case refused && answer.Site != "":
		site = answer.Site
	}
	if e, ok := errors.AsType[*httpapi.UnreachableError](err); ok && !e.Sent {
		return err
	}
	if site == "" {
		return &hintError{err, fmt.Sprintf("compare the books (samya entity get %s); the request's id is %s", entity, m.requestID)}
	}
	return &hintError{err, fmt.Sprintf("find out with: samya %s %s %d --request-id %s --site %s", m.verb, entity, tokens, m.requestID, site)}
}
