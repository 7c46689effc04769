package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/settings"
	"github.com/spf13/cobra"
)

// defaultWait is the default wait of `samya acquire` for tokens.
const defaultWait = 5 * time.Second

// acquireCommand is `samya acquire`.
func (p *program) acquireCommand() *cobra.Command {
	m := &move{verb: "acquire", done: "acquired"}
	cmd := &cobra.Command{
		Use:     "acquire NAME N",
		Short:   "Acquire tokens of an entity",
		Example: "  samya acquire acme/vm 3 --wait 2s\n  samya acquire acme/vm 3 --ttl 30s --holder job-7",
		Args:    exactly("NAME", "N"),
		RunE:    m.run,
	}
	f := cmd.Flags()
	f.DurationVar(&m.wait, "wait", defaultWait, "how long to wait for tokens of other sites, at most 60s")
	f.Int64Var(&m.minTokens, "min-tokens", 0, "fewest tokens to be content with (default: all of them)")
	f.BoolVar(&m.dryRun, "dry-run", false, "only tell what would be granted at once")
	settings.FormerOfAnother(f, "lease", "ttl")
	f.DurationVar(&m.ttl, "ttl", 0, "life of the lease, 1s to 168h, after which it ends by itself (default: hold the tokens for good)")
	f.StringVar(&m.holder, "holder", "", "whose the lease is")
	m.setUp(p, cmd)
	return cmd
}

// releaseCommand is `samya release`.
func (p *program) releaseCommand() *cobra.Command {
	m := &move{verb: "release", done: "released"}
	cmd := &cobra.Command{
		Use:     "release NAME N",
		Short:   "Give tokens of an entity back",
		Example: "  samya release acme/vm 3\n  samya release acme/vm 2 --lease us/01JD2M5E4Z",
		Args:    exactly("NAME", "N"),
		RunE:    m.run,
	}
	cmd.Flags().StringVar(&m.lease, "lease", "", "name of the lease that the tokens are of: no more than it holds is given back")
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
	attempt    uint32
	tried      []string
	notAfter   string
	// Fields of an acquire.
	minTokens int64
	dryRun    bool
	ttl       time.Duration
	holder    string
	// Field of a release.
	lease string
}

func (m *move) setUp(p *program, cmd *cobra.Command) {
	m.talker = p.talk(cmd)
	cmd.ValidArgsFunction = m.completeEntities
	m.flags(cmd)
}

// flags defines the flags that acquires and releases share.
func (m *move) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&m.requestID, "request-id", "", requestIDUsage)
	cmd.Flags().StringVar(&m.site, "site", "", "site that must answer (default: any)")
	cmd.Flags().Uint32Var(&m.attempt, "attempt", 0, "which attempt of the request id this is; one after the first moves tokens once at whatever site, and needs --not-after")
	cmd.Flags().StringSliceVar(&m.tried, "tried", nil, "sites that earlier attempts may have reached (default: any)")
	cmd.Flags().StringVar(&m.notAfter, "not-after", "", "time after which no attempt is executed, such as 2026-01-02T15:04:05Z; the same for all attempts")
}

// body checks the command line and returns the request.
func (m *move) body(entity string, tokens int64) (httpapi.Request, error) {
	body := httpapi.Request{
		Tokens: tokens, RequestID: m.requestID, Site: m.site, Attempt: m.attempt, Tried: m.tried,
		MinTokens: m.minTokens, DryRun: m.dryRun,
	}
	errs := []error{
		name.Entity("name", entity), name.Wait("wait", m.wait), name.RequestID("request-id", m.requestID),
		name.Attempt("attempt", int64(m.attempt)), name.Holder("holder", m.holder),
	}
	bad := func(field, problem string) { errs = append(errs, &name.Error{Field: field, Problem: problem}) }
	if m.site != "" {
		errs = append(errs, name.Site("site", m.site))
	}
	if m.lease != "" {
		_, _, err := name.Lease("lease", m.lease)
		errs = append(errs, err, name.Released("tokens", tokens, 0))
		body.Lease = m.lease
	} else {
		errs = append(errs, name.Tokens("tokens", tokens), name.MinTokens("min-tokens", m.minTokens, max(1, tokens)))
	}
	switch {
	case m.ttl != 0:
		errs = append(errs, name.TTL("ttl", m.ttl))
		body.Lease = httpapi.LeaseTerms{TTL: m.ttl.String(), Holder: m.holder}
	case m.holder != "":
		bad("holder", "only with --ttl")
	}
	switch at, err := time.Parse(time.RFC3339Nano, m.notAfter); {
	case m.notAfter == "" && m.attempt > 1:
		bad("not-after", "missing: an attempt after the first has that of the first")
	case m.notAfter == "":
	case err != nil:
		bad("not-after", "must be a time such as 2026-01-02T15:04:05Z")
	default:
		body.NotAfter = &at
	}
	if m.verb == "acquire" {
		body.Wait = m.wait.String()
	}
	return body, errors.Join(errs...)
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
	body, err := m.body(entity, tokens)
	if err != nil {
		return err
	}
	client, err := m.client()
	if err != nil {
		return err
	}
	send := client.Release
	if m.verb == "acquire" {
		send = client.Acquire
	}
	return within(cmd.Context(), m.wait, func(ctx context.Context) error {
		moved, err := send(ctx, entity, body)
		if err != nil {
			return m.hint(entity, tokens, fmt.Errorf("%s %d of %s: %w", m.verb, tokens, entity, err))
		}
		return m.print(moved, func(w io.Writer) { row(w, m.told(entity, moved)) })
	})
}

// told returns the text of a successful request.
func (m *move) told(entity string, moved httpapi.Moved) string {
	if m.dryRun {
		return fmt.Sprintf("%d of %s would be granted at %s; %d left there", moved.Tokens, entity, moved.Site, moved.Left)
	}
	text := fmt.Sprintf("%s %d of %s at %s; %d left there", m.done, moved.Tokens, entity, moved.Site, moved.Left)
	if l := moved.Lease; l != nil {
		text += fmt.Sprintf("\nlease %s ends in %s", l.Name, time.Duration(l.RemainingMS)*time.Millisecond)
	}
	if moved.Parked {
		text += "\nit is counted once other sites have been asked"
	}
	return text
}

// hint adds a hint to the error of a request with an unknown outcome: how to find the
// outcome.
func (m *move) hint(entity string, tokens int64, err error) error {
	answer, refused := errors.AsType[*apierr.Error](err)
	if !doubtful(err) {
		return err
	}
	flags, site := "", m.site
	switch {
	case refused && answer.Attempt > 0 && !answer.NotAfter.IsZero():
		flags = fmt.Sprintf(" --attempt %d --not-after %s", answer.Attempt, answer.NotAfter.Format(time.RFC3339Nano))
		if len(answer.Tried) > 0 {
			flags += " --tried " + strings.Join(answer.Tried, ",")
		}
	case m.notAfter != "":
		// No site answered: the repeat must ask all tried sites.
		flags = fmt.Sprintf(" --attempt %d --not-after %s", max(1, m.attempt)+1, m.notAfter)
	case refused && answer.Site != "":
		site = answer.Site
	}
	if flags == "" && site == "" {
		return &hintError{err, fmt.Sprintf("compare the books (samya entity get %s); the request's id is %s", entity, m.requestID)}
	}
	if site != "" {
		flags += " --site " + site
	}
	return &hintError{err, fmt.Sprintf("find out with: samya %s %s %d --request-id %s%s%s", m.verb, entity, tokens, m.requestID, m.same(), flags)}
}

// same returns the flags that a repeat needs for the same body.
func (m *move) same() string {
	var s strings.Builder
	for _, f := range []struct {
		given bool
		flag  string
	}{
		{m.minTokens != 0, fmt.Sprintf(" --min-tokens %d", m.minTokens)},
		{m.ttl != 0, fmt.Sprintf(" --ttl %s", m.ttl)},
		{m.holder != "", " --holder " + m.holder},
		{m.lease != "", " --lease " + m.lease},
	} {
		if f.given {
			s.WriteString(f.flag)
		}
	}
	return s.String()
}

// doubtful reports whether a request with this error may have been executed.
func doubtful(err error) bool {
	if answer, refused := errors.AsType[*apierr.Error](err); refused {
		return !answer.Reason.NothingDone()
	}
	e, ok := errors.AsType[*httpapi.UnreachableError](err)
	return !ok || e.Sent
}

// hinted adds the hint to the error of a request that may have been executed.
func hinted(err error, hint string) error {
	if doubtful(err) {
		return &hintError{err, hint}
	}
	return err
}
