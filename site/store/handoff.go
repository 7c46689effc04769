package store

import (
	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/handoff"
	storev1 "github.com/samya-db/samya/proto/samya/store/v1"
	"github.com/samya-db/samya/site/wire"
)

func encodeHandoff(s *handoff.State) *storev1.HandoffState {
	if s.Open == nil && len(s.Given) == 0 && len(s.Taken) == 0 {
		return nil
	}
	p := &storev1.HandoffState{}
	if b := s.Open; b != nil {
		p.Open = &storev1.HandoffBequest{Heir: string(b.Heir), Number: b.Number, Estate: wire.Estate(&b.Estate)}
	}
	for _, g := range s.Given {
		p.Given = append(p.Given, &storev1.HandoffGiven{Heir: string(g.Heir), Number: g.Number})
	}
	for _, t := range s.Taken {
		p.Taken = append(p.Taken, &storev1.HandoffTaken{Leaver: string(t.Leaver), Number: t.Number})
	}
	return p
}

func decodeHandoff(p *storev1.HandoffState) handoff.State {
	var s handoff.State
	if b := p.GetOpen(); b != nil {
		s.Open = &handoff.Bequest{Heir: avantan.SiteID(b.GetHeir()), Number: b.GetNumber(), Estate: wire.EstateOf(b.GetEstate())}
	}
	for _, g := range p.GetGiven() {
		s.Given = append(s.Given, handoff.Given{Heir: avantan.SiteID(g.GetHeir()), Number: g.GetNumber()})
	}
	for _, t := range p.GetTaken() {
		s.Taken = append(s.Taken, handoff.Taken{
			Leaver: avantan.SiteID(t.GetLeaver()), Number: t.GetNumber(),
		})
	}
	return s
}
