package site

import (
	"context"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/checks"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/wire"
)

// RecoverCluster implements samyav1.ClusterServiceServer: this site goes on without the
// lost sites. It need not be vouched for: the sites that could may be lost.
func (s cluster) RecoverCluster(ctx context.Context, r *samyav1.RecoverClusterRequest) (*samyav1.RecoverClusterResponse, error) {
	if err := checks.Recover(r); err != nil {
		return nil, apierr.FromName(err)
	}
	if err := expired(ctx); err != nil {
		return nil, err
	}
	in := &input.Recover{Survivors: wire.SitesOf(r.GetSurvivors()), Lost: wire.SitesOf(r.GetLost()), Check: r.GetCheck()}
	a, err := s.engine.Do(ctx, func(c input.Call) input.Input { in.Call = c; return in })
	if err != nil {
		return nil, s.broken(err, asked{})
	}
	if err := s.recoveryRefusal(a); err != nil {
		return nil, err
	}
	if !in.Check {
		s.log.Warn("a majority of the sites is lost for good, by the word of an operator; this site goes on without them",
			"survivors", r.GetSurvivors(), "lost", r.GetLost())
	}
	return &samyav1.RecoverClusterResponse{Sites: []string{s.cfg.Name}}, nil
}

// recoveryRefusal tells why this site does not go on without the lost sites.
func (s cluster) recoveryRefusal(a answer.Answer) error {
	switch {
	case a.Code == answer.Mismatch:
		return refused("the survivors are a majority of the members and decide as usual: write the lost sites off one by one, with samya member remove NAME --lost")
	case a.Code == answer.Invalid && a.Lacking == s.cfg.Name:
		return apierr.Invalid("survivors", "must name site "+s.cfg.Name+", which was asked")
	case a.Code == answer.Invalid:
		return apierr.Invalid("lost", "site "+a.Lacking+" must be either here or in survivors; what has left or was lost does not come back")
	case a.Code == answer.NotFound && a.Lacking == "":
		return refused("no survivor votes in the catalogue at site %s: nothing can be decided without the lost sites; restore a backup of one", s.cfg.Name)
	case a.Code == answer.NotFound:
		return refused("no survivor votes on entity %q at site %s: nothing can be decided of it without the lost sites; restore a backup of one", a.Lacking, s.cfg.Name)
	}
	return s.failure(a, asked{})
}
