package reads

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/cutid"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// cutReply is a site's answer for a cut.
func cutReply(site string, change func(e *samyav1.Entity, u *samyav1.Usage)) *samyav1.CutEntityResponse {
	resp := fake.ShareOf(site, &samyav1.Entity{Name: "e", Limit: 75, Generation: 3, Version: 4}, 20, 5)
	own := resp.GetUsage().GetShares()[0]
	own.Moves = &samyav1.Moves{Applied: 2, Own: 5, Returning: 1, Leased: 2}
	if change != nil {
		change(resp.GetEntity(), resp.GetUsage())
	}
	return &samyav1.CutEntityResponse{Entity: resp.GetEntity(), Usage: resp.GetUsage()}
}

// TestCut: a cut counts the sites' own tokens, without those that return, and keeps the
// version, generation, lease and surplus of the entity.
func TestCut(t *testing.T) {
	for what, c := range map[string]struct {
		change func(e *samyav1.Entity, u *samyav1.Usage)
		want   cutid.Cut
	}{
		"plain": {nil, cutid.Cut{Entity: "e", Generation: 3, Version: 4, Counted: 15, Returning: 3, Leased: 6}},
		"a surplus": {func(e *samyav1.Entity, u *samyav1.Usage) {
			e.Limit, u.Surplus = 85, 10
		}, cutid.Cut{Entity: "e", Generation: 3, Version: 4, Counted: 25, Returning: 3, Leased: 6}},
		"a surplus that may be of entities below": {func(e *samyav1.Entity, u *samyav1.Usage) {
			e.Limit, e.Children, u.Surplus = 85, 2, 10
		}, cutid.Cut{Entity: "e", Generation: 3, Version: 4, Counted: 15, Returning: 3, Leased: 6}},
		"written off": {func(e *samyav1.Entity, u *samyav1.Usage) {
			e.Limit, u.WrittenOff = 82, 7
		}, cutid.Cut{Entity: "e", Generation: 3, Version: 4, Counted: 15, Returning: 3, WrittenOff: 7, Leased: 6}},
	} {
		inBubble(t, fake.ThreeSites, nil, func(r *rig) {
			for _, site := range r.sites {
				site.OnCut = func(context.Context, *samyav1.CutEntityRequest) (*samyav1.CutEntityResponse, error) {
					return cutReply(site.Name, c.change), nil
				}
			}
			fake.Pass(10 * time.Second)
			got, err := r.service.CutEntity(r.t.Context(), &samyav1.CutEntityRequest{Name: "e"})
			if err != nil || got.GetCut() != c.want.String() || got.GetInUse() != c.want.InUse() || got.GetLeased() != 6 ||
				got.GetEndedMs() < got.GetBegunMs()+100 || got.GetBegunMs() == 0 {
				r.t.Errorf("%s: %v, %v; want %+v, which is %s", what, got, err, c.want, c.want.String())
			}
		})
	}
}

// TestNoCut: a cut needs all sites, of a single version, and a consistent cut of all tokens.
func TestNoCut(t *testing.T) {
	for what, c := range map[string]struct {
		eu   func(asked int) (*samyav1.CutEntityResponse, error)
		says string
	}{
		"a silent site": {func(int) (*samyav1.CutEntityResponse, error) { return nil, apierr.Unreachable("eu") }, "no answer of eu"},
		"a site that never hears": {func(int) (*samyav1.CutEntityResponse, error) {
			return cutReply("eu", func(e *samyav1.Entity, u *samyav1.Usage) { e.Version, u.Shares[0].Moves.Applied = 3, 1 }), nil
		}, "not applied the same changes"},
		"tokens that are nowhere": {func(int) (*samyav1.CutEntityResponse, error) {
			return cutReply("eu", func(_ *samyav1.Entity, u *samyav1.Usage) { u.Shares[0].Left = 19 }), nil
		}, "not applied the same changes"},
		"a site that hears later": {func(asked int) (*samyav1.CutEntityResponse, error) {
			return cutReply("eu", func(e *samyav1.Entity, _ *samyav1.Usage) { e.Version = uint64(min(4, 2+asked)) }), nil //nolint:gosec // small
		}, ""},
		"members that change": {func(int) (*samyav1.CutEntityResponse, error) {
			return nil, apierr.New(apierr.MembersChanging, "a change of members is under way: site us leaves")
		}, "MEMBERS_CHANGING: a change of members is under way: site us leaves"},
		"too many tokens": {func(int) (*samyav1.CutEntityResponse, error) {
			return cutReply("eu", func(_ *samyav1.Entity, u *samyav1.Usage) { u.Shares[0].Moves.Own = 1 << 54 }), nil
		}, "no count"},
	} {
		inBubble(t, fake.ThreeSites, nil, func(r *rig) {
			asked := 0
			for name, site := range r.sites {
				site.OnCut = func(context.Context, *samyav1.CutEntityRequest) (*samyav1.CutEntityResponse, error) {
					if name != "eu" {
						return cutReply(name, nil), nil
					}
					asked++
					return c.eu(asked)
				}
			}
			fake.Pass(10 * time.Second)
			got, err := r.service.CutEntity(r.t.Context(), &samyav1.CutEntityRequest{Name: "e"})
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				r.t.Errorf("%s: %v, %v", what, got, err)
			}
		})
	}
}

func TestInvalidCut(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		fake.Pass(10 * time.Second)
		if _, err := r.service.CutEntity(r.t.Context(), &samyav1.CutEntityRequest{Name: "a//b"}); apierr.ReasonOf(err) != apierr.InvalidField {
			r.t.Error(err)
		}
		if _, err := r.service.CutEntity(r.t.Context(), &samyav1.CutEntityRequest{Name: "none"}); apierr.ReasonOf(err) != apierr.EntityNotFound {
			r.t.Error(err)
		}
	})
}
