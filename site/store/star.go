package store

import (
	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/star"
	storev1 "github.com/samya-db/samya/proto/samya/store/v1"
	"github.com/samya-db/samya/site/wire"
)

// encodeStar returns nil for the zero state, which most entities have.
func encodeStar(s *star.State) *storev1.StarState {
	if s.Reserved == 0 && len(s.Slices) == 0 && len(s.Floors) == 0 {
		return nil
	}
	p := &storev1.StarState{Reserved: s.Reserved, Floors: wire.All(s.Floors, encodeStarID)}
	for i := range s.Slices {
		sl := &s.Slices[i]
		p.Slices = append(p.Slices, &storev1.StarSlice{
			Id: encodeStarID(sl.ID), Pledge: wire.Contribution(&sl.Pledge),
			Value: wire.Value(sl.Value), Committed: sl.Committed, Concluded: sl.Concluded,
		})
	}
	return p
}

func encodeStarID(id star.ID) *storev1.StarID {
	return &storev1.StarID{Leader: string(id.Leader), Counter: id.Counter}
}

func decodeStar(p *storev1.StarState) star.State {
	s := star.State{Reserved: p.GetReserved(), Floors: wire.All(p.GetFloors(), decodeStarID)}
	for _, sl := range p.GetSlices() {
		slice := star.Slice{
			ID: decodeStarID(sl.GetId()), Value: wire.ValueOf(sl.GetValue()),
			Committed: sl.GetCommitted(), Concluded: sl.GetConcluded(),
		}
		if c := wire.ContributionOf(sl.GetPledge()); c != nil {
			slice.Pledge = *c
		}
		s.Slices = append(s.Slices, slice)
	}
	return s
}

func decodeStarID(p *storev1.StarID) star.ID {
	return star.ID{Leader: avantan.SiteID(p.GetLeader()), Counter: p.GetCounter()}
}
