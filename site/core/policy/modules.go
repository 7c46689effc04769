// Package policy has the paper's modules that can be exchanged (Section 4.1.1): admission,
// triggers, wants, offers, strategies, and the choice of a protocol. Each decides from a
// Situation alone. The package refuses to keep any state.
package policy

import (
	"math"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/predict"
	"github.com/samya-db/samya/site/core/input"
)

// Situation is the information on which the modules decide about an entity.
type Situation struct {
	// Left is the number of tokens that the site may use; negative in debt.
	Left avantan.Tokens
	// Queued is the number of tokens that waiting acquires ask for in all, First the
	// number for the acquire that has waited longest.
	Queued, First avantan.Tokens
	// Rate is the number of tokens acquired a second, an exponential mean over 0.25 s.
	Rate float64
	// Pace is the same mean over 0.05 s.
	Pace float64
	// Forecast covers the horizon of a redistribution; zero while nothing is known.
	Forecast predict.Forecast
	// Limit is the entity's limit, as known here.
	Limit avantan.Tokens
	// Elsewhere is the number of tokens that the other sites in reach are believed to
	// have left in all. Told says whether all others in reach have told lately.
	Elsewhere avantan.Tokens
	Told      bool
	// Scarce says that, by recent reports of all sites, less than a twentieth of the
	// limit is left at all sites together.
	Scarce bool
	// Direct says that the site tries direct transfers first, which bring tokens within a
	// round trip.
	Direct bool
	// LastGrant is the number of tokens left at the site after its last redistribution,
	// or else at the creation of the entity.
	LastGrant avantan.Tokens
	// NoQuorum says that the site goes on without a majority. Own is then the number of
	// tokens the site would have left, had it kept its escrow since it last had a
	// majority. Lent is its lack of Own, as far as others can spare it.
	NoQuorum  bool
	Own, Lent avantan.Tokens
	// Changing says that a limit change waits to be decided.
	Changing bool
	// Refused is the largest acquire refused in an exhaustion since others were last asked.
	Refused avantan.Tokens
	// SinceTrigger is the time since this site last began a redistribution.
	SinceTrigger avantan.Tick
	// Lacking is the number of tokens that other sites lack for their reported needs at
	// even odds. It is 0 unless this site has the most to spare of all, and enough for
	// that.
	Lacking avantan.Tokens
}

// Verdict is the fate of an acquire that the tokens left cannot serve.
type Verdict uint8

const (
	// WaitForTokens holds the acquire until tokens come or its time is up.
	WaitForTokens Verdict = iota
	// RefuseNow refuses the acquire.
	RefuseNow
)

// Admission is the request handling module: it decides about acquires that the tokens
// left cannot serve.
type Admission interface {
	// Short decides for an acquire that may wait. If an instance has just shown that no
	// tokens are to be had, emptyFor > 0 is the time in milliseconds for which the site
	// believes so.
	Short(s Situation, tokens avantan.Tokens, emptyFor avantan.Tick) Verdict
	// Patient reports whether acquires may wait in an exhaustion. The site then disbelieves a
	// exhaustion while others report many tokens, and sites report gains at once. Small
	// acquires wait a moment all the same.
	Patient() bool
}

// OfferPolicy decides how much of an escrow goes into an instance.
type OfferPolicy interface {
	// Offer returns how many of the tokens left to set aside: never more than Left, and
	// all of Left if negative (protocol rule: debt is offered whole).
	Offer(s Situation, press avantan.Press) avantan.Tokens
}

// Trigger decides when a site begins an instance.
type Trigger interface {
	// Due returns the reason to begin an instance now, or "" for none.
	Due(s Situation) string
	// Enough returns a bound on the tokens left, at such a Pace and Rate: with the bound
	// or more left, Due is sure to find nothing of the site's own to do. The check is
	// cheap enough for every grant. The rate is 0 where the situation is Direct.
	Enough(pace, rate float64) avantan.Tokens
}

// Variant is a way for sites to agree on moving tokens.
type Variant uint8

const (
	// Majority is Avantan[(n+1)/2], package avantan: a majority decides, and all
	// reachable sites take part.
	Majority Variant = iota
	// Star is Avantan[*], package star: the participating sites decide.
	Star
	// Direct is package transfer: tokens go from site to site without agreement. No
	// Protocol chooses it; see Strategy.
	Direct
)

// Protocol chooses the variant under which a site begins an instance. Whatever the
// choice, the site takes part in the instances of both variants, and an instance ends
// under the variant it began under. A majority always decides limits, and which entities
// exist.
type Protocol interface {
	// Choose returns the variant, given whether a majority seems to be reachable.
	Choose(majority bool) Variant
}

var (
	admissions = map[string]Admission{
		"proof":  waitAdmission{},
		"wait":   waitAdmission{patient: true},
		"refuse": refuseAdmission{},
	}
	offerPolicies = map[string]OfferPolicy{
		"all":   offerAll{},
		"spare": offerSpare{},
	}
	protocols = map[string]Protocol{
		"auto":     autoProtocol{},
		"majority": always(Majority),
		"star":     always(Star),
	}
	waits = map[string]avantan.Wait{
		"all":    avantan.WaitAll,
		"quorum": avantan.WaitQuorum,
	}
)

// AdmissionNames lists the admission modules.
func AdmissionNames() []string { return namesOf(admissions) }

// OfferNames lists the offer policies.
func OfferNames() []string { return namesOf(offerPolicies) }

// TriggerNames lists the triggers.
func TriggerNames() []string { return namesOf(triggers) }

// ProtocolNames lists the protocols.
func ProtocolNames() []string { return namesOf(protocols) }

// WaitNames lists the choices of sites for which the leader of a majority instance waits.
func WaitNames() []string { return namesOf(waits) }

// always begins every instance under the same variant.
type always Variant

func (a always) Choose(bool) Variant { return Variant(a) }

// autoProtocol begins instances under the majority variant, which moves tokens between
// all sites, while a majority is there, and else under the star variant.
type autoProtocol struct{}

func (autoProtocol) Choose(majority bool) Variant {
	if majority {
		return Majority
	}
	return Star
}

// waitAdmission lets acquires wait unless the system is known to be empty.
type waitAdmission struct{ patient bool }

func (a waitAdmission) Patient() bool { return a.patient }

func (waitAdmission) Short(_ Situation, _ avantan.Tokens, emptyFor avantan.Tick) Verdict {
	if emptyFor > 0 {
		return RefuseNow
	}
	return WaitForTokens
}

// refuseAdmission never lets an acquire wait: a bare escrow.
type refuseAdmission struct{}

func (refuseAdmission) Patient() bool { return false }

func (refuseAdmission) Short(Situation, avantan.Tokens, avantan.Tick) Verdict { return RefuseNow }

// offerAll offers the whole escrow, as the paper does.
type offerAll struct{}

func (offerAll) Offer(s Situation, _ avantan.Press) avantan.Tokens { return s.Left }

// offerSpare keeps the tokens that the site is about to need itself: max(4 + 0.75 s of
// its rate, min(one bin's high quantile, half of the tokens left)). When pressed it
// offers all: a request is refused only if the tokens are nowhere.
type offerSpare struct{}

func (offerSpare) Offer(s Situation, press avantan.Press) avantan.Tokens {
	if s.Left <= 0 || press >= avantan.PressAll {
		return s.Left
	}
	keep := math.Max(4+0.75*s.Rate, math.Min(s.Forecast.Next, float64(s.Left)/2))
	return s.Left - min(s.Left, avantan.Tokens(min(keep, float64(input.MaxTokens))))
}

// Strategy chooses the means by which a site gets the tokens it is short of.
type Strategy interface {
	// Direct reports whether a site first asks other sites one by one. It begins an
	// instance where that has not brought enough for the waiting acquires, and for all
	// that needs agreement.
	Direct() bool
}

var strategies = map[string]Strategy{
	"instance": strategy(false),
	"transfer": strategy(true),
}

// StrategyNames lists the strategies.
func StrategyNames() []string { return namesOf(strategies) }

type strategy bool

func (s strategy) Direct() bool { return bool(s) }
