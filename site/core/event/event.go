// Package event has the events of a core for its metrics. Nothing rests on events.
package event

import (
	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/spanctx"
	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/policy"
)

// Kind names a kind of event for the metrics.
type Kind uint8

const (
	// RedistributionStarted: this site began an instance.
	RedistributionStarted Kind = iota + 1
	// RedistributionApplied: this site applied a decided instance.
	RedistributionApplied
	// RedistributionFailed: an instance begun by this site found no majority.
	RedistributionFailed
	// GaveUp: the site refused waiting acquires, as there were no tokens anywhere.
	GaveUp
	// ProtocolFault: the site refused an impossible message or decision.
	ProtocolFault
	// BooksBroken: a balance of the entity went beyond its bound, and the site halts
	// the entity with its tree.
	BooksBroken
	// Serving: the site begins to serve, as enough members vouch for its data.
	Serving
	// SitesChanged: the cluster has other members, or sites that join.
	SitesChanged
	// ForecastFellBack: forecasts were not finite, and the newest bin replaced them.
	ForecastFellBack
	// ForecastDropped: the stored state of a forecasting model was unusable; the model
	// learns anew.
	ForecastDropped
	// AuditBegun: this site began an audit.
	AuditBegun
	// SurplusFound: an audit here has found a surplus, which the site sets aside.
	SurplusFound
	// LeaseGranted: a lease was granted.
	LeaseGranted
	// LeaseRenewed: a lease got a new time to live.
	LeaseRenewed
	// LeaseCommitted: a lease ended, as its holder kept tokens of the lease for good.
	LeaseCommitted
	// LeaseExpired: a lease ended, as its time was up; its tokens went back.
	LeaseExpired
	// LeaseReturned: a lease gave back tokens before its time was up.
	LeaseReturned
	// ClaimMade: the site answered a request although earlier attempts may have run
	// elsewhere.
	ClaimMade
	// ClaimAnswered: another site has told the fate of the earlier attempts there:
	// Verdict.
	ClaimAnswered
	// ClaimsFull: the maximum number of requests waits for the answer of Site.
	ClaimsFull
	// ClaimGivenUp: Site has not answered for so long that this site stops asking about
	// Request, to make room for others.
	ClaimGivenUp
	// CreatedWithout: an entity was created while Site seemed out of reach; its share is
	// unusable until Site is back.
	CreatedWithout
	// TenantRefused: the site refused a request, as the table of requests is nearly full
	// and the entity's tenant has an equal part of it.
	TenantRefused
	// KeysDropped: keys of the template Entity were dropped before they had all their tokens, as
	// memory is short.
	KeysDropped
	// SiteOut: Site is gone, or was written off.
	SiteOut
	// VersionKnown: the site has come to know another version of the cluster: Version.
	VersionKnown
	// SpanEnded: work for a request whose trace is recorded has ended: Span.
	SpanEnded
)

// Event is an event for the metrics.
type Event struct {
	Kind   Kind
	Entity string
	// Trigger is the reason for beginning an instance.
	Trigger string
	// Variant is the variant of an instance begun or failed. It is Direct for a round of
	// direct transfers begun, failed, or applied; an applied round has brought tokens.
	Variant policy.Variant
	// Count is the number of forecasts that fell back or were dropped.
	Count uint64
	// Verdict is the verdict of a ClaimAnswered.
	Verdict message.ClaimVerdict
	// Site is the other member of a ClaimsFull, ClaimGivenUp or CreatedWithout. Request
	// is the key of a ClaimGivenUp.
	Site    avantan.SiteID
	Request attempt.Key
	// Members are the members, and Peers all other sites to be in touch with: SitesChanged.
	// Roster counts the changes of the voters. Heirs has an entry for each site that ever
	// had a seat: the site that takes over from it, or has leases of it, if it leaves, has left or was about to.
	Members, Peers []avantan.SiteID
	Roster         uint64
	Heirs          map[avantan.SiteID]avantan.SiteID
	// Version is what the site tells of its versions from a VersionKnown on.
	Version versions.Speaker
	// Err describes a ProtocolFault or BooksBroken.
	Err error
	// Span is the work that a SpanEnded tells of.
	Span *Span
}

// Names of spans.
const (
	// WaitSpan: an acquire waited for tokens.
	WaitSpan = "samya.wait"
	// TransferSpan: a site asked others for tokens.
	TransferSpan = "samya.transfer"
	// GiveSpan: a site was asked, and gave or refused.
	GiveSpan = "samya.transfer.give"
	// ReceiveSpan: the asking site took what was given, or the refusal.
	ReceiveSpan = "samya.transfer.receive"
	// InstanceSpan: a site led an instance.
	InstanceSpan = "samya.instance"
	// PromiseSpan: another site was asked to promise, and to contribute.
	PromiseSpan = "samya.instance.promise"
	// AcceptSpan: another site was asked to accept the value.
	AcceptSpan = "samya.instance.accept"
	// ApplySpan: another site was told the decision.
	ApplySpan = "samya.instance.apply"
)

// Span is work for a request whose trace is recorded.
type Span struct {
	Name string
	// Own is the span, Parent the one above. Remote says that the parent is another site's.
	Own, Parent *spanctx.Context
	Remote      bool
	// Began and Ended are times of input.Now.Nanos. Ended is 0 for work that ends as the
	// effects of its step leave.
	Began, Ended int64
	// Entity is the entity's name, and Peer the other site, empty for none.
	Entity string
	Peer   avantan.SiteID
	// Tokens are asked for, Granted were given or taken.
	Tokens, Granted avantan.Tokens
	// Trigger is the reason for beginning a redistribution; Outcome says how the work ended.
	Trigger, Outcome string
}
