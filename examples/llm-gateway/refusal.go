package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/samya-db/samya/client"
)

// problemType is the media type of problem documents (RFC 9457).
const problemType = "application/problem+json"

// quotaExceeded is the type of refusals (draft-ietf-httpapi-ratelimit-headers).
const quotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"

// problem is a problem document.
type problem struct {
	Type   string `json:"type,omitempty"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Violated are the policies without tokens.
	Violated []string `json:"violated-policies,omitempty"`
}

func (p problem) json() []byte {
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and a number
	}
	return b
}

func (p problem) write(w http.ResponseWriter) {
	(&reply{p.Status, problemType, p.json()}).write(w)
}

// undecided reports whether an error is no decision: samya cannot be reached, or cannot
// tell.
func undecided(err error) bool {
	for _, decision := range []error{client.ErrOutOfTokens, client.ErrExceedsLimit, client.ErrEntityNotFound, client.ErrInvalid} {
		if errors.Is(err, decision) {
			return false
		}
	}
	return true
}

// refuse answers a request that got no tokens.
func (g *gateway) refuse(w http.ResponseWriter, r *http.Request, team string, err error) {
	var refused *refusedError
	var e *client.Error
	switch {
	case !errors.As(err, &refused) || !errors.As(err, &e) || undecided(err):
		g.log.Warn("no decision", "team", team, "error", err)
		w.Header().Set("Retry-After", "1")
		problem{Status: http.StatusServiceUnavailable, Title: "the budgets cannot be reached"}.write(w)
	case errors.Is(err, client.ErrOutOfTokens):
		g.tell(w, r, team, refused.policy, e)
		problem{
			Type: quotaExceeded, Status: http.StatusTooManyRequests, Title: "the budget has too few tokens left",
			Detail: fmt.Sprintf("tokens a %s of team %s", refused.policy, team), Violated: []string{refused.policy},
		}.write(w)
	case errors.Is(err, client.ErrExceedsLimit):
		problem{
			Status: http.StatusBadRequest, Title: "more tokens than the budget ever has",
			Detail: fmt.Sprintf("tokens a %s of team %s: shorten the prompt, or lower max_tokens", refused.policy, team),
		}.write(w)
	case errors.Is(err, client.ErrEntityNotFound):
		problem{Status: http.StatusForbidden, Title: "the team has no budget"}.write(w)
	default:
		g.log.Error("samya refuses the request", "team", team, "error", err)
		problem{Status: http.StatusInternalServerError, Title: "the gateway is at fault"}.write(w)
	}
}

// tell writes Retry-After, RateLimit-Policy and RateLimit. The last two are left out if the
// budget cannot be read.
func (g *gateway) tell(w http.ResponseWriter, r *http.Request, team, policy string, refused *client.Error) {
	wait := max(1, seconds(refused.RetryAfter))
	w.Header().Set("Retry-After", strconv.FormatInt(wait, 10))
	e, err := g.budgets.samya.Entity(r.Context(), entity(team, policy), client.Local())
	if err != nil {
		return
	}
	reset := wait
	if !e.WindowEnds.IsZero() {
		reset = max(0, seconds(time.Until(e.WindowEnds)))
	}
	w.Header().Set("RateLimit-Policy", fmt.Sprintf("%q;q=%d;w=%d", policy, e.Limit, seconds(period(e.Rate.Per))))
	w.Header().Set("RateLimit", fmt.Sprintf("%q;r=%d;t=%d", policy, max(0, refused.Left), reset))
}

// seconds rounds up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// period is the length of a period such as 10s, 1d or 1month, of a month about.
func period(per string) time.Duration {
	const day = 24 * time.Hour
	for unit, length := range map[string]time.Duration{"month": 30 * day, "d": day} {
		if n, err := strconv.ParseInt(strings.TrimSuffix(per, unit), 10, 32); err == nil && strings.HasSuffix(per, unit) {
			return time.Duration(n) * length
		}
	}
	d, err := time.ParseDuration(per)
	if err != nil {
		return 0
	}
	return d
}
