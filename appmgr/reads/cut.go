package reads

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/cutid"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// CutEntity implements samyav1.EntityServiceServer. It asks all sites, as an exact read
// does, and those again that have not applied the entity's last change. Without a
// consistent cut of all sites there is none: an operator's count would be compared with
// tokens counted twice.
func (s *Reads) CutEntity(ctx context.Context, in *samyav1.CutEntityRequest) (*samyav1.CutEntityResponse, error) {
	if err := name.Entity("name", in.GetName()); err != nil {
		return nil, apierr.FromName(err)
	}
	if err := ctx.Err(); err != nil {
		return nil, apierr.Ended(err)
	}
	begun := time.Now()
	sum, replies, err := s.gather(ctx, in.GetName(), s.cutShare, outdated)
	if err != nil {
		return nil, err
	}
	return cutOf(sum, replies, begun, time.Now())
}

// cutShare asks a site for its share, with its part of the tokens in use.
func (s *Reads) cutShare(ctx context.Context, site, entity string) (*samyav1.GetEntityResponse, error) {
	resp := &samyav1.CutEntityResponse{}
	err := s.router.At(ctx, site, route.Call{
		Method: samyav1.EntityService_CutEntity_FullMethodName, Resp: resp, Read: true, Entity: entity,
		Req: &samyav1.CutEntityRequest{Name: entity},
	})
	return &samyav1.GetEntityResponse{Entity: resp.GetEntity(), Usage: resp.GetUsage()}, err
}

// outdated names the sites that have not applied the last change of the entity's version.
// The books of such a site may lack the change's effect.
func outdated(replies []reply) []string {
	var last uint64
	for i := range replies {
		last = max(last, replies[i].resp.GetEntity().GetVersion())
	}
	var sites []string
	for i := range replies {
		if replies[i].resp.GetEntity().GetVersion() < last {
			sites = append(sites, replies[i].site)
		}
	}
	return sites
}

// cutOf makes a cut of the replies of all sites and their sum.
func cutOf(sum *samyav1.GetEntityResponse, replies []reply, begun, ended time.Time) (*samyav1.CutEntityResponse, error) {
	e, u := sum.GetEntity(), sum.GetUsage()
	var silent []string
	for i := range replies {
		r := &replies[i]
		if apierr.ReasonOf(r.err) == apierr.MembersChanging {
			return nil, r.err
		}
		if r.err != nil {
			silent = append(silent, r.site)
		}
	}
	switch {
	case len(silent) > 0:
		return nil, noCut(e.GetName(), "no answer of "+strings.Join(silent, ", "))
	case !u.GetConsistent() || len(outdated(replies)) > 0:
		return nil, noCut(e.GetName(), "the sites have not applied the same changes")
	}
	c := cutid.Cut{Entity: e.GetName(), Generation: e.GetGeneration(), Version: e.GetVersion(), WrittenOff: u.GetWrittenOff()}
	children := false
	for i := range replies {
		m := ownShare(&replies[i]).GetMoves()
		c.Counted += m.GetOwn()
		c.Returning += m.GetReturning()
		c.Leased += m.GetLeased()
		children = children || replies[i].resp.GetEntity().GetChildren() > 0
	}
	// With entities below, the surplus may be theirs.
	if !children {
		c.Counted += u.GetSurplus()
	}
	word := c.String()
	if _, err := cutid.Parse("cut", e.GetName(), word); err != nil {
		return nil, apierr.New(apierr.OutOfRange, "entity %q has %d tokens out, which no count can be compared with", e.GetName(), c.Counted)
	}
	return &samyav1.CutEntityResponse{
		Entity: e, Usage: u, Cut: word, InUse: c.InUse(), Returning: c.Returning, Leased: c.Leased, BegunMs: begun.UnixMilli(), EndedMs: ended.UnixMilli(),
	}, nil
}

// noCut says that there is no cut now.
func noCut(entity, why string) *apierr.Error {
	e := apierr.New(apierr.SiteUnavailable, "%s", fmt.Sprintf("no cut of entity %q: %s; a cut needs all sites", entity, why))
	e.Entity, e.RetryAfter = entity, time.Second
	return e
}
