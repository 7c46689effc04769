package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/name"
)

// The exit statuses; the root command's help explains them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitOutOfTokens = 3
	exitNotFound    = 4
	exitUnreachable = 5
	exitUnknown     = 6
	exitWarning     = 7
	exitCritical    = 8
	exitInterrupted = 130
)

// errInterrupted says that a signal ended the command.
var errInterrupted = errors.New("interrupted")

// errReported fails a command that has already printed the reason.
var errReported = errors.New("failed")

// usageError says that the command line is wrong.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// hintError is an error with a hint, for errors of a kind without a hint of its own.
type hintError struct {
	err  error
	hint string
}

func (e *hintError) Error() string { return e.err.Error() }
func (e *hintError) Unwrap() error { return e.err }

// explain returns the exit status for a command's error, and the text to print: the
// error and a hint.
func explain(err error, cmd *cobra.Command) (code int, text string) {
	say := func(code int, hints ...string) (int, string) {
		if e, ok := errors.AsType[*hintError](err); ok {
			hints = []string{e.hint}
		}
		lines := []string{"samya: " + err.Error()}
		for _, h := range hints {
			lines = append(lines, "  "+h)
		}
		return code, strings.Join(lines, "\n")
	}
	if errors.Is(err, errReported) {
		return exitFailed, ""
	}
	if e, ok := errors.AsType[*verdictError](err); ok {
		return e.code, ""
	}
	if errors.Is(err, errInterrupted) {
		return say(exitInterrupted)
	}
	if e, ok := errors.AsType[*apierr.Error](err); ok {
		if e.Reason == apierr.VersionMismatch && cmd.CommandPath() == "samya mode set" {
			return say(exitFailed, "somebody else changed it; read it again with: samya mode")
		}
		if e.Reason == apierr.VersionMismatch && cmd.CommandPath() == "samya cluster version" {
			return say(exitFailed, "see what each site knows and speaks with: samya cluster version")
		}
		if e.Reason == apierr.RouteNotFound && cmd.CommandPath() == "samya cluster version" {
			return say(exitFailed, "a site or app manager has a build of version 1, which knows no other; upgrade all of them first")
		}
		if e.Reason == apierr.VersionMismatch && cmd.CommandPath() == "samya entity reconcile" {
			return say(exitFailed, "nothing was done; make another cut and count anew: samya entity reconcile "+cmd.Flags().Arg(0))
		}
		return explainAnswer(e, cmp.Or(e.Entity, cmd.Flags().Arg(0)), say)
	}
	if e, ok := errors.AsType[*httpapi.UnreachableError](err); ok {
		if e.Sent {
			return say(exitUnknown, "the request may or may not have been done")
		}
		err = fmt.Errorf("no app manager answers at %s: %w", e.Addr, errors.Unwrap(e))
		if op, ok := errors.AsType[*net.OpError](e.Err); !ok || op.Op != "dial" {
			return say(exitUnreachable, "it listens, but one side refuses the other's certificate; see --tls-ca, --tls-cert and --tls-server-name")
		}
		return say(exitUnreachable, "start one (samya appmgr, or samya demo --keep) or pass its address with --addr or SAMYA_ADDR")
	}
	if _, ok := errors.AsType[*siteUnreachableError](err); ok {
		return say(exitUnreachable, "start it (samya site), or pass the gRPC address of another with --site")
	}
	if e, ok := errors.AsType[*httpapi.ForeignAnswerError](err); ok {
		return say(exitFailed, "--addr must be the HTTP address of an app manager; "+e.Addr+" is something else")
	}
	_, isName := errors.AsType[*name.Error](err)
	_, isUsage := errors.AsType[*usageError](err)
	if isName || isUsage || strings.HasPrefix(err.Error(), "unknown command") || strings.HasPrefix(err.Error(), "required flag") {
		return say(exitUsage, fmt.Sprintf("see %s --help", cmd.CommandPath()))
	}
	return say(exitFailed)
}

// explainAnswer explains an app manager's refusal of a request about an entity.
func explainAnswer(e *apierr.Error, entity string, say func(int, ...string) (int, string)) (code int, text string) {
	retry := "try again later"
	if e.RetryAfter > 0 {
		retry = "try again in " + e.RetryAfter.Round(time.Millisecond).String()
	}
	switch e.Reason {
	case apierr.OutOfTokens:
		if e.Left != nil {
			of := ""
			if e.Lacking != "" {
				of = " of " + e.Lacking
			}
			retry = fmt.Sprintf("%d tokens%s are left at site %s; %s, ask for fewer, or wait longer with --wait", *e.Left, of, e.Site, retry)
		}
		return say(exitOutOfTokens, retry)
	case apierr.ExceedsLimit:
		hint := "ask for fewer, or raise the limit with: samya entity set-limit"
		if e.Limit != nil {
			hint = fmt.Sprintf("ask for %d at most, or raise the limit with: samya entity set-limit %s N", *e.Limit, cmp.Or(e.Lacking, entity))
		}
		return say(exitUsage, hint)
	case apierr.EntityNotFound:
		return say(exitNotFound, fmt.Sprintf("create it with: samya entity create %s --limit N", entity), "or see which there are with: samya entity list")
	case apierr.ParentNotFound:
		return say(exitNotFound, fmt.Sprintf("create it with: samya entity create %s --limit N", e.Entity), "or see which there are with: samya entity tree")
	case apierr.HasChildren:
		return say(exitFailed, "see which with: samya entity tree "+entity+"; delete all of them at once with: samya entity delete "+entity+" --subtree")
	case apierr.LeaseNotFound:
		return say(exitNotFound, "see which there are with: samya lease list")
	case apierr.Superseded:
		return say(exitFailed, "a later attempt was made; repeat with a higher --attempt to learn its answer")
	case apierr.RequestExpired:
		return say(exitFailed, "its --not-after is past; ask anew, with another --request-id")
	case apierr.EntityExists:
		return say(exitFailed, "change its limit with: samya entity set-limit "+entity+" N")
	case apierr.VersionMismatch:
		return say(exitFailed, "somebody else changed it; read it again with: samya entity get "+entity)
	case apierr.ClusterVersionTooLow:
		return say(exitFailed, "see what each site knows and speaks with: samya cluster version")
	case apierr.Unauthenticated:
		return say(exitFailed, "show who you are with --token-file, or --tls-cert and --tls-key")
	case apierr.PermissionDenied:
		return say(exitFailed, "the access file of the app manager says what this caller may do")
	case apierr.RateLimited:
		return say(exitUnreachable, "nothing was done; "+retry)
	case apierr.InvalidField, apierr.OutOfRange:
		return say(exitUsage)
	case apierr.RequestIDReused:
		return say(exitUsage, "use another --request-id, or repeat the first request unchanged")
	case apierr.MemberNotFound:
		return say(exitNotFound, "see which there are with: samya member list")
	case apierr.MemberState:
		return say(exitFailed, "see the states of the sites with: samya member list")
	case apierr.MembersChanging:
		return say(exitFailed, "members change one at a time; see what the change waits for with: samya member list")
	case apierr.Overloaded, apierr.QueueFull, apierr.SiteUnavailable, apierr.SiteDraining, apierr.LeaseMoved, apierr.NoQuorum, apierr.ShuttingDown, apierr.DeadlineExceeded:
		return say(exitUnreachable, "nothing was done; "+retry+"; samya sites shows which sites answer")
	case apierr.OutcomeUnknown, apierr.Canceled:
		return say(exitUnknown)
	}
	return say(exitFailed)
}
