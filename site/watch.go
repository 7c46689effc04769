package site

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/engine"
	"google.golang.org/grpc"
)

// watchPause is the shortest time between two states sent to a watch.
const watchPause = 100 * time.Millisecond

// WatchEntity implements samyav1.EntityServiceServer. Whenever this site's own share
// changes, it sends that share and the last known shares of other sites.
func (s entities) WatchEntity(r *samyav1.WatchEntityRequest, stream grpc.ServerStreamingServer[samyav1.WatchEntityResponse]) error {
	token, tokenErr := parseWatchToken(r.GetResumeToken())
	if err := errors.Join(name.Entity("name", r.GetName()), tokenErr); err != nil {
		return apierr.FromName(err)
	}
	// A token of another site, or of an earlier run, says nothing of revisions. known
	// is the generation that this site has reported; 0 for none.
	var after input.Revision
	var known uint64
	if token.site == s.cfg.Name && token.run == s.run {
		after, known = token.revision, token.generation
	}
	q := asked{entity: r.GetName()}
	next := func(ctx context.Context, after input.Revision) (answer.Answer, error) {
		in := &input.Watch{Entity: r.GetName(), After: after}
		a, err := s.engine.Do(ctx, func(c input.Call) input.Input { in.Call = c; return in })
		switch {
		case errors.Is(err, engine.ErrStopped):
			return a, s.failure(answer.Answer{Code: answer.Stopping}, q)
		case err != nil:
			return a, s.broken(err, asked{})
		case a.Code == answer.NotFound && known != 0:
			return answer.Answer{Deleted: true, Details: &answer.Details{View: answer.View{Name: r.GetName(), Generation: known}}}, nil
		case a.Code == answer.OK:
			known = a.View().Generation
		}
		return a, s.failure(a, q)
	}
	return follow(stream.Context(), after, next, func(a *answer.Answer) error {
		s.metrics.states.Inc()
		return stream.Send(s.watchState(a))
	})
}

// follow sends each later state, as far as there is time for it. It sends a state that
// comes within watchPause of the state before at the end of that pause, or a later
// state in its place. It returns nil after a deletion.
func follow(
	ctx context.Context, after input.Revision, next func(context.Context, input.Revision) (answer.Answer, error),
	send func(*answer.Answer) error,
) error {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return apierr.Wrap(apierr.Canceled, context.Cause(ctx))
		case <-pause.C:
		}
		a, err := next(ctx, after)
		if err != nil {
			return err
		}
		if err := send(&a); err != nil {
			return fmt.Errorf("telling a state: %w", err)
		}
		if a.Deleted {
			return nil
		}
		after = a.Revision
		pause.Reset(watchPause)
	}
}

func (s *Site) watchState(a *answer.Answer) *samyav1.WatchEntityResponse {
	v := a.View()
	resp := &samyav1.WatchEntityResponse{
		Entity: entityOf(v), Deleted: a.Deleted,
		ResumeToken: watchToken{site: s.cfg.Name, run: s.run, revision: a.Revision, generation: v.Generation}.String(),
	}
	if !a.Deleted {
		resp.Usage = s.usage(v, true)
		// A watch adds nothing up.
		for _, sh := range resp.Usage.GetShares() {
			sh.Moves = nil
		}
	}
	return resp
}

// watchToken names the last state that a watch was sent. Its revision counts at the
// site and in the run that issued the token.
type watchToken struct {
	site       string
	run        message.Run
	revision   input.Revision
	generation uint64
}

// String returns the token as clients get it.
func (t watchToken) String() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s.%x.%x.%x", t.site, uint64(t.run), uint64(t.revision), t.generation))
}

// maxWatchToken bounds a token, in bytes.
const maxWatchToken = 256

// parseWatchToken reads a token; an empty text gives the zero token.
func parseWatchToken(text string) (watchToken, error) {
	if text == "" {
		return watchToken{}, nil
	}
	bad := &name.Error{Field: "resume_token", Problem: "is none that a watch gave"}
	if len(text) > maxWatchToken {
		return watchToken{}, bad
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	fields := strings.Split(string(raw), ".")
	if err != nil || len(fields) != 4 || name.Site("resume_token", fields[0]) != nil {
		return watchToken{}, bad
	}
	var numbers [3]uint64
	for i, f := range fields[1:] {
		if numbers[i], err = strconv.ParseUint(f, 16, 64); err != nil {
			return watchToken{}, bad
		}
	}
	t := watchToken{site: fields[0], run: message.Run(numbers[0]), revision: input.Revision(numbers[1]), generation: numbers[2]}
	if t.String() != text {
		return watchToken{}, bad
	}
	return t, nil
}
