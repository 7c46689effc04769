package site

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/history"
)

// changesFile has the last changes that were asked of the site, in its data directory.
const changesFile = "changes.log"

// maxCaller bounds the name of a caller in the history, in bytes.
const maxCaller = 256

// noted are the kinds of changes that the history has, by their names in the API.
var noted = map[input.ChangeKind]string{
	input.CreateEntity: history.Created, input.SetLimit: "limit", input.MoveEntity: "move", input.Reconcile: "reconcile",
}

// openHistory opens the history; one in memory for a node that keeps no files.
func (c *Config) openHistory() (*history.History, error) {
	if c.DataDir == "" || c.Nodes != nil {
		return history.Open("")
	}
	return history.Open(filepath.Join(c.DataDir, changesFile))
}

// limitBefore is the limit that a change of the limit begins with, at a version.
type limitBefore struct {
	limit   int64
	version uint64
}

// before looks at an entity before its limit changes; nil if the site does not tell.
func (s entities) before(ctx context.Context, ch *input.Change) *limitBefore {
	if ch.Kind != input.SetLimit {
		return nil
	}
	a, err := s.engine.Do(ctx, func(c input.Call) input.Input { return &input.Read{Call: c, Entity: ch.Name} })
	if err != nil || a.Code != answer.OK || a.View().Name != ch.Name {
		return nil
	}
	return &limitBefore{int64(a.View().Limit), a.View().Version}
}

// remember notes a change that was decided. A change stands whether or not it can be noted.
func (s entities) remember(ctx context.Context, ch *input.Change, before *limitBefore, a answer.Answer) {
	kind, is := noted[ch.Kind]
	if !is {
		return
	}
	v := a.View()
	c := history.Change{
		AtMS: time.Now().UnixMilli(), Entity: ch.Name, Caller: access.Who(ctx).Name, RequestID: ch.RequestID, Kind: kind,
		NewLimit: int64(v.Limit), Version: v.Version, Generation: v.Generation, Parent: v.Parent,
	}
	c.Caller = c.Caller[:min(len(c.Caller), maxCaller)]
	if before != nil && before.version+1 == v.Version {
		c.OldLimit = &before.limit
	}
	if err := s.history.Add(c); err != nil {
		s.log.Warn("a change is not in the history of its entity after a restart", slog.String("entity", ch.Name), slog.Any("error", err))
	}
}

// GetEntityHistory implements samyav1.EntityServiceServer: the changes asked of this site.
func (s entities) GetEntityHistory(ctx context.Context, r *samyav1.GetEntityHistoryRequest) (*samyav1.GetEntityHistoryResponse, error) {
	if err := name.Entity("name", r.GetName()); err != nil {
		return nil, apierr.FromName(err)
	}
	if err := expired(ctx); err != nil {
		return nil, err
	}
	out := &samyav1.GetEntityHistoryResponse{Complete: cluster{Site: s.Site}.alone()}
	for _, c := range s.history.Of(r.GetName()) {
		out.Changes = append(out.Changes, &samyav1.EntityChange{
			AtMs: c.AtMS, Caller: c.Caller, RequestId: c.RequestID, Kind: c.Kind, OldLimit: c.OldLimit, NewLimit: c.NewLimit,
			Version: c.Version, Generation: c.Generation, Parent: c.Parent, Site: s.cfg.Name,
		})
	}
	return out, nil
}
