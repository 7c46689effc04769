package site

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/partitions"
)

// InspectSites implements samyav1.ClusterServiceServer: the figures of this site's
// partitions. It does not ask the disk, so that a site answers while its disk hangs.
func (s cluster) InspectSites(ctx context.Context, r *samyav1.InspectSitesRequest) (*samyav1.InspectSitesResponse, error) {
	if named := r.GetSite(); named != "" {
		if err := name.Site("site", named); err != nil {
			return nil, apierr.FromName(err)
		}
		if named != s.cfg.Name {
			return nil, apierr.Invalid("site", "a site tells of itself, and this is "+s.cfg.Name+": an app manager asks any")
		}
	}
	if err := expired(ctx); err != nil {
		return nil, err
	}
	return &samyav1.InspectSitesResponse{Complete: r.GetSite() != "" || s.alone(), Sites: []*samyav1.SiteInspection{s.inspection()}}, nil
}

// stats returns the figures of the partitions; zero if there are none.
func (s *Site) stats() partitions.Stats {
	if s.inspect == nil {
		return partitions.Stats{}
	}
	return s.inspect()
}

func (s *Site) inspection() *samyav1.SiteInspection {
	st := s.stats()
	m := &samyav1.SiteInspection{
		Site: s.cfg.Name, Known: true, Up: durationpb.New(time.Since(s.began)),
		Served: st.Served, Cross: st.Cross, Passed: st.Passed, Imbalance: st.Imbalance,
		Repartitioning: &samyav1.Repartitioning{
			On: st.Adaptive, Computed: uint64(st.Control.Computed), Applied: uint64(st.Control.Applied),
			Skipped: uint64(st.Control.Skipped), Failed: uint64(st.Control.Failed), Moved: uint64(st.Control.Moved),
			Tracking: st.Control.Sample, LastCut: st.Control.LastCut, LastCutTime: durationpb.New(st.Control.LastCutTime),
			Pause: &samyav1.SwitchPause{
				Count: uint64(st.Pause.Count), P50: durationpb.New(st.Pause.P50),
				P99: durationpb.New(st.Pause.P99), Max: durationpb.New(st.Pause.Max),
			},
		},
	}
	for _, p := range st.Partitions {
		m.Partitions = append(m.Partitions, &samyav1.Partition{
			Entities: uint64(p.Entities), Operations: p.Served, Queued: uint64(p.Queued),
		})
	}
	for _, e := range st.Split {
		split := &samyav1.SplitEntity{Name: e.Name, Operations: e.Served}
		for _, left := range e.Left {
			split.Left = append(split.Left, int64(left))
		}
		m.Split = append(m.Split, split)
	}
	return m
}
