package wire

import (
	"errors"
	"fmt"

	"github.com/samya-db/samya/avantan"

	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/message"
)

var claimKinds = map[message.ClaimKind]peerv1.ClaimKind{
	message.UndoAcquire:   peerv1.ClaimKind_CLAIM_KIND_UNDO_ACQUIRE,
	message.SettleRelease: peerv1.ClaimKind_CLAIM_KIND_SETTLE_RELEASE,
	message.ReturnLease:   peerv1.ClaimKind_CLAIM_KIND_RETURN_LEASE,
}

var claimVerdicts = map[message.ClaimVerdict]peerv1.ClaimVerdict{
	message.NeverRan:  peerv1.ClaimVerdict_CLAIM_VERDICT_NEVER,
	message.DidRun:    peerv1.ClaimVerdict_CLAIM_VERDICT_RAN,
	message.Forgotten: peerv1.ClaimVerdict_CLAIM_VERDICT_FORGOTTEN,
}

var (
	claimKindsBack    = inverse(claimKinds)
	claimVerdictsBack = inverse(claimVerdicts)
)

var errKey = errors.New("a request key that has not 16 bytes")

// ClaimAsk returns an ask's protobuf form.
func ClaimAsk(a *message.ClaimAsk) *peerv1.ClaimAsk {
	p := &peerv1.ClaimAsk{
		Number: uint64(a.Number), Kind: claimKinds[a.Kind], Key: a.Key[:], Body: a.Body, Entity: a.Entity,
		Tokens: int64(a.Tokens), Attempt: uint32(a.Attempt), NotAfter: a.NotAfter,
	}
	if a.Kind == message.ReturnLease {
		p.Lease = a.Lease[:]
	}
	return p
}

// ClaimAskOf is the inverse of ClaimAsk. Its errors are a kind that this build does not
// know, and a request or lease key of a wrong length.
func ClaimAskOf(p *peerv1.ClaimAsk) (message.ClaimAsk, error) {
	kind, ok := claimKindsBack[p.GetKind()]
	if !ok {
		return message.ClaimAsk{}, fmt.Errorf("claim of unknown kind %d", p.GetKind())
	}
	a := message.ClaimAsk{
		Number: message.ClaimNumber(p.GetNumber()), Kind: kind, Body: p.GetBody(), Entity: p.GetEntity(),
		Tokens: core.Tokens(p.GetTokens()), Attempt: attempt.Number(p.GetAttempt()), NotAfter: p.GetNotAfter(),
	}
	if copy(a.Key[:], p.GetKey()) != len(a.Key) || len(p.GetKey()) != len(a.Key) {
		return message.ClaimAsk{}, errKey
	}
	if kind == message.ReturnLease && (copy(a.Lease[:], p.GetLease()) != len(a.Lease) || len(p.GetLease()) != len(a.Lease)) {
		return message.ClaimAsk{}, errKey
	}
	return a, nil
}

func encodeClaims(c *message.Claims) *peerv1.Claims {
	p := &peerv1.Claims{}
	for i := range c.Asks {
		p.Asks = append(p.Asks, ClaimAsk(&c.Asks[i]))
	}
	for _, a := range c.Answers {
		p.Answers = append(p.Answers, &peerv1.ClaimAnswer{Number: uint64(a.Number), Verdict: claimVerdicts[a.Verdict]})
	}
	return p
}

func decodeClaims(p *peerv1.ProtocolMessage, from, to core.SiteID) (message.Envelope, error) {
	c := &message.Claims{From: from, To: to}
	for _, a := range p.GetClaims().GetAsks() {
		ask, err := ClaimAskOf(a)
		if err != nil {
			return message.Envelope{}, err
		}
		c.Asks = append(c.Asks, ask)
	}
	for _, a := range p.GetClaims().GetAnswers() {
		verdict, ok := claimVerdictsBack[a.GetVerdict()]
		if !ok {
			return message.Envelope{}, fmt.Errorf("answer to a claim of unknown verdict %d", a.GetVerdict())
		}
		c.Answers = append(c.Answers, message.ClaimAnswer{Number: message.ClaimNumber(a.GetNumber()), Verdict: verdict})
	}
	return message.Envelope{Mark: MarkOf(p.GetMark()), Claims: c}, nil
}

var auditSteps = map[message.AuditStep]peerv1.AuditStep{
	message.AuditWatch:    peerv1.AuditStep_AUDIT_STEP_WATCH,
	message.AuditWatching: peerv1.AuditStep_AUDIT_STEP_WATCHING,
	message.AuditRead:     peerv1.AuditStep_AUDIT_STEP_READ,
	message.AuditTell:     peerv1.AuditStep_AUDIT_STEP_TELL,
}

var auditStepsBack = inverse(auditSteps)

func encodeAudit(a *message.Audit) *peerv1.Audit {
	return &peerv1.Audit{
		Number: a.Number, Step: auditSteps[a.Step], Net: int64(a.Net), Watch: a.Watch, Shape: a.Shape,
		Still: a.Still, Held: int64(a.Held), Applied: uint64(a.Applied),
	}
}

func decodeAudit(p *peerv1.ProtocolMessage, from, to core.SiteID) (message.Envelope, error) {
	a := p.GetAudit()
	step, ok := auditStepsBack[a.GetStep()]
	if !ok {
		return message.Envelope{}, fmt.Errorf("audit of unknown step %d", a.GetStep())
	}
	return message.Envelope{
		Entity: p.GetEntity(), Generation: p.GetGeneration(), Mark: MarkOf(p.GetMark()),
		Audit: &message.Audit{
			From: from, To: to, Number: a.GetNumber(), Step: step, Net: core.Tokens(a.GetNet()), Watch: a.GetWatch(),
			Shape: a.GetShape(), Still: a.GetStill(), Held: core.Tokens(a.GetHeld()), Applied: avantan.Instance(a.GetApplied()),
		},
	}, nil
}
