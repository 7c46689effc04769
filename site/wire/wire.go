// Package wire translates the protocol's plain types to and from their protobuf form.
// It does not judge them: package avantan defines the meaning of a message and checks
// it.
package wire

import (
	"fmt"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/spanctx"
	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
)

var kinds = map[avantan.Kind]peerv1.MessageKind{
	avantan.Election:   peerv1.MessageKind_MESSAGE_KIND_ELECTION,
	avantan.ElectionOk: peerv1.MessageKind_MESSAGE_KIND_ELECTION_OK,
	avantan.Refuse:     peerv1.MessageKind_MESSAGE_KIND_REFUSE,
	avantan.Accept:     peerv1.MessageKind_MESSAGE_KIND_ACCEPT,
	avantan.AcceptOk:   peerv1.MessageKind_MESSAGE_KIND_ACCEPT_OK,
	avantan.Decision:   peerv1.MessageKind_MESSAGE_KIND_DECISION,
	avantan.Applied:    peerv1.MessageKind_MESSAGE_KIND_APPLIED,
	avantan.Abandon:    peerv1.MessageKind_MESSAGE_KIND_ABANDON,
	avantan.Status:     peerv1.MessageKind_MESSAGE_KIND_STATUS,
	avantan.CatchUpAsk: peerv1.MessageKind_MESSAGE_KIND_CATCH_UP_ASK,
	avantan.CatchUp:    peerv1.MessageKind_MESSAGE_KIND_CATCH_UP,
}

var kindsBack = inverse(kinds)

// Encode returns an envelope's protobuf form. It shares nothing with the
// envelope but byte slices.
func Encode(e *message.Envelope) *peerv1.ProtocolMessage {
	p := encode(e)
	if e.Trace != nil {
		p.Trace = e.Trace.Bytes()
	}
	return p
}

func encode(e *message.Envelope) *peerv1.ProtocolMessage {
	switch {
	case e.Vouch != nil:
		return &peerv1.ProtocolMessage{Mark: Mark(e.Mark), Vouch: encodeVouch(e.Vouch)}
	case e.Star != nil:
		return &peerv1.ProtocolMessage{
			Entity: e.Entity, Generation: e.Generation, Mark: Mark(e.Mark), Star: encodeStar(e.Star),
		}
	case e.Transfer != nil:
		return &peerv1.ProtocolMessage{
			Entity: e.Entity, Generation: e.Generation, Mark: Mark(e.Mark), Transfer: encodeTransfer(e.Transfer), Window: e.Window,
		}
	case e.Handoff != nil:
		return &peerv1.ProtocolMessage{
			Entity: e.Entity, Generation: e.Generation, Mark: Mark(e.Mark), Handoff: encodeHandoff(e.Handoff), Window: e.Window,
		}
	case e.Gossip != nil:
		return &peerv1.ProtocolMessage{Mark: Mark(e.Mark), Gossip: encodeGossip(e.Gossip)}
	case e.Claims != nil:
		return &peerv1.ProtocolMessage{Mark: Mark(e.Mark), Claims: encodeClaims(e.Claims)}
	case e.Audit != nil:
		return &peerv1.ProtocolMessage{
			Entity: e.Entity, Generation: e.Generation, Mark: Mark(e.Mark), Audit: encodeAudit(e.Audit),
		}
	case e.Leave != nil:
		return &peerv1.ProtocolMessage{Mark: Mark(e.Mark), Leave: encodeLeave(e.Leave)}
	}
	m := &e.Message
	return &peerv1.ProtocolMessage{
		Entity: e.Entity, Generation: e.Generation, Mark: Mark(e.Mark),
		Kind: kinds[m.Kind], Instance: uint64(m.Instance),
		Ballot: Ballot(m.Ballot), Promised: Ballot(m.Promised), Press: uint32(m.Press),
		Contribution: contribution(m.Contribution), AcceptedAt: Ballot(m.AcceptedAt),
		Value: Value(m.Value), Applied: uint64(m.Applied), Kept: Kept(m.Kept), Snapshot: m.Snapshot,
	}
}

// Decode returns the envelope of a protobuf message that site from sent to site to. Its
// errors are a kind, verdict or step that this build does not know, and a key of a
// wrong length. A trace that is malformed is none.
func Decode(p *peerv1.ProtocolMessage, from, to core.SiteID) (message.Envelope, error) {
	e, err := decode(p, from, to)
	e.Trace = spanctx.Parse(p.GetTrace())
	return e, err
}

func decode(p *peerv1.ProtocolMessage, from, to core.SiteID) (message.Envelope, error) {
	switch {
	case p.GetVouch() != nil:
		return decodeVouch(p, from, to)
	case p.GetStar() != nil:
		return decodeStar(p, from, to)
	case p.GetTransfer() != nil:
		return decodeTransfer(p, from, to)
	case p.GetHandoff() != nil:
		return decodeHandoff(p, from, to)
	case p.GetGossip() != nil:
		return decodeGossip(p, from, to), nil
	case p.GetClaims() != nil:
		return decodeClaims(p, from, to)
	case p.GetAudit() != nil:
		return decodeAudit(p, from, to)
	case p.GetLeave() != nil:
		return decodeLeave(p, from, to)
	}
	kind, ok := kindsBack[p.GetKind()]
	if !ok {
		return message.Envelope{}, fmt.Errorf("message of unknown kind %d", p.GetKind())
	}
	e := message.Envelope{
		Entity: p.GetEntity(), Generation: p.GetGeneration(), Mark: MarkOf(p.GetMark()),
		Message: avantan.Message{
			Kind: kind, From: from, To: to, Instance: avantan.Instance(p.GetInstance()),
			Ballot: BallotOf(p.GetBallot()), Promised: BallotOf(p.GetPromised()),
			Press:      avantan.Press(min(p.GetPress(), 255)).Known(),
			AcceptedAt: BallotOf(p.GetAcceptedAt()), Value: ValueOf(p.GetValue()),
			Applied: avantan.Instance(p.GetApplied()), Kept: KeptOf(p.GetKept()), Snapshot: p.GetSnapshot(),
		},
	}
	if c := p.GetContribution(); c != nil {
		e.Message.Contribution = new(contributionOf(c))
	}
	return e, nil
}

// All returns the values of a list, each in its other form; nil for an empty list.
func All[From, To any](list []From, other func(From) To) (all []To) {
	for _, v := range list {
		all = append(all, other(v))
	}
	return all
}

// Names returns the names of sites, nil for none. SitesOf is its inverse.
func Names(sites []core.SiteID) []string {
	return All(sites, func(s core.SiteID) string { return string(s) })
}

// SitesOf is the inverse of Names.
func SitesOf(names []string) []core.SiteID {
	return All(names, func(n string) core.SiteID { return core.SiteID(n) })
}

// Ballot returns a ballot's protobuf form, nil for the zero ballot.
func Ballot(b avantan.Ballot) *peerv1.Ballot {
	if b.IsZero() {
		return nil
	}
	return &peerv1.Ballot{Number: b.Number, Site: string(b.Site)}
}

// BallotOf is the inverse of Ballot.
func BallotOf(p *peerv1.Ballot) avantan.Ballot {
	return avantan.Ballot{Number: p.GetNumber(), Site: avantan.SiteID(p.GetSite())}
}

func contribution(c *avantan.Contribution) *peerv1.Contribution {
	if c == nil {
		return nil
	}
	return &peerv1.Contribution{
		Site: string(c.Site), Offered: int64(c.Offered), Wanted: int64(c.Wanted), Queued: int64(c.Queued),
		Kept: int64(c.Kept), Median: int64(c.Median), Window: c.Window,
	}
}

func contributionOf(p *peerv1.Contribution) avantan.Contribution {
	return avantan.Contribution{
		Site: avantan.SiteID(p.GetSite()), Offered: avantan.Tokens(p.GetOffered()),
		Wanted: avantan.Tokens(p.GetWanted()), Queued: avantan.Tokens(p.GetQueued()),
		Kept: avantan.Tokens(p.GetKept()), Median: avantan.Tokens(p.GetMedian()), Window: p.GetWindow(),
	}
}

// Contribution returns a contribution's protobuf form, nil for nil.
func Contribution(c *avantan.Contribution) *peerv1.Contribution { return contribution(c) }

// ContributionOf is the inverse of Contribution.
func ContributionOf(p *peerv1.Contribution) *avantan.Contribution {
	if p == nil {
		return nil
	}
	return new(contributionOf(p))
}

// Value returns a value's protobuf form, nil for nil.
func Value(v *avantan.Value) *peerv1.Value {
	if v == nil {
		return nil
	}
	p := &peerv1.Value{Policy: v.Policy, Change: v.Change}
	for i := range v.Contributions {
		p.Contributions = append(p.Contributions, contribution(&v.Contributions[i]))
	}
	return p
}

// ValueOf is the inverse of Value.
func ValueOf(p *peerv1.Value) *avantan.Value {
	if p == nil {
		return nil
	}
	return &avantan.Value{Policy: p.GetPolicy(), Change: p.GetChange(), Contributions: All(p.GetContributions(), contributionOf)}
}

// Kept returns a retention table's protobuf form.
func Kept(kept []avantan.Kept) []*peerv1.Kept {
	var ps []*peerv1.Kept
	for i := range kept {
		k := &kept[i]
		ps = append(ps, &peerv1.Kept{Peer: string(k.Peer), Instance: uint64(k.Instance), Value: Value(&k.Value)})
	}
	return ps
}

// KeptOf is the inverse of Kept.
func KeptOf(ps []*peerv1.Kept) []avantan.Kept {
	var kept []avantan.Kept
	for _, p := range ps {
		k := avantan.Kept{Peer: avantan.SiteID(p.GetPeer()), Instance: avantan.Instance(p.GetInstance())}
		if v := ValueOf(p.GetValue()); v != nil {
			k.Value = *v
		}
		kept = append(kept, k)
	}
	return kept
}
