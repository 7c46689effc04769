package core

import (
	"math"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/predict"
)

// Situation is what the modules may look at when they decide about one entity.
type Situation struct {
	// Left is what the site has; negative in debt.
	Left Tokens
	// Queued is what waiting acquires ask for in all, First the one that has
	// waited longest.
	Queued, First Tokens
	// Rate is the tokens acquired a second, an exponential mean over 0.25 s.
	Rate float64
	// Pace is the same over 0.05 s.
	Pace float64
	// Forecast is of the horizon of a redistribution; zero while nothing is known.
	Forecast predict.Forecast
	// Limit is the entity's, as known here.
	Limit Tokens
	// Elsewhere is what the other sites are believed to have left in all, those
	// out of reach excluded, and Told says whether all others in reach have told
	// lately.
	Elsewhere Tokens
	Told      bool
	// Scarce says that by what all have told less than a twentieth of the limit is
	// left at all sites together.
	Scarce bool
	// Direct says that direct transfers are tried first, which bring tokens within a
	// round trip.
	Direct bool
	// LastGrant is what the site had after the last redistribution it took
	// part in, or else when the entity was created.
	LastGrant Tokens
	// Apart says that the site goes on without a majority. Own is what it would have
	// left then if it still held what it held when a majority was there last, and Lent
	// what it lacks of that, as far as others can spare it.
	Apart     bool
	Own, Lent Tokens
	// Changing says that a limit change waits to be decided.
	Changing bool
	// Refused is the largest acquire refused in a drought since others were asked
	// last.
	Refused Tokens
	// SinceTrigger is how long ago a redistribution was begun here.
	SinceTrigger Tick
	// Lacking is what other sites lack, by what they have told, of what they expect
	// to need at even odds, if this site has most to spare of all and enough for
	// that; else 0.
	Lacking Tokens
}

// Verdict is what becomes of an acquire that the tokens left cannot serve.
type Verdict uint8

const (
	// WaitForTokens holds it until tokens come or its time is up.
	WaitForTokens Verdict = iota
	// RefuseNow refuses it.
	RefuseNow
)

// Admission is the request handling module: it says what becomes of an acquire
// that the tokens left cannot serve.
type Admission interface {
	// Short decides for an acquire that may wait, with emptyFor > 0 if an
	// instance has just shown that no tokens are to be had and for how many
	// milliseconds that is believed.
	Short(s Situation, tokens Tokens, emptyFor Tick) Verdict
	// Patient says that what an instance has shown is not believed while others tell of
	// many tokens, which they do at once, and that small acquires wait a moment all the
	// same.
	Patient() bool
}

// OfferPolicy says how much of an escrow goes into an instance.
type OfferPolicy interface {
	// Offer returns how much of what is left to set aside: never more than
	// Left, and all of it if Left is negative (protocol rule: debt is offered
	// whole).
	Offer(s Situation, press avantan.Press) Tokens
}

// Trigger says when a site begins an instance.
type Trigger interface {
	// Due returns the reason to begin an instance now, or "" for none.
	Due(s Situation) string
	// Enough returns with how many tokens left, at such a Pace and Rate, Due is sure
	// to find nothing of the site's own to do: a bound that is cheap to look at after
	// each grant. The rate is 0 where the situation is Direct.
	Enough(pace, rate float64) Tokens
}

// Variant is a way for sites to agree on moving tokens.
type Variant uint8

const (
	// Majority is Avantan[(n+1)/2], package avantan: a majority decides, and all
	// reachable sites take part.
	Majority Variant = iota
	// Star is Avantan[*], package star: the sites that take part decide.
	Star
	// Direct is package transfer: tokens go from site to site, and nothing is
	// agreed on. No Protocol chooses it; see Strategy.
	Direct
)

// Protocol says under which variant a site begins an instance. Whatever it
// says, the site takes part in the instances of both, and those that are under
// way end under the one they began under. Limits, and which entities exist, are
// always decided by a majority.
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

// WaitNames lists for whom the leader of a majority instance may wait.
func WaitNames() []string { return namesOf(waits) }

// always begins every instance under one variant.
type always Variant

func (a always) Choose(bool) Variant { return Variant(a) }

// autoProtocol begins instances under the majority variant, which moves tokens
// between all sites, while a majority is there, and else under the other one.
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

func (waitAdmission) Short(_ Situation, _ Tokens, emptyFor Tick) Verdict {
	if emptyFor > 0 {
		return RefuseNow
	}
	return WaitForTokens
}

// refuseAdmission never lets an acquire wait: a bare escrow.
type refuseAdmission struct{}

func (refuseAdmission) Patient() bool { return false }

func (refuseAdmission) Short(Situation, Tokens, Tick) Verdict { return RefuseNow }

// offerAll offers the whole escrow, as the paper does.
type offerAll struct{}

func (offerAll) Offer(s Situation, _ avantan.Press) Tokens { return s.Left }

// offerSpare keeps what the site is about to need itself: max(4 + 0.75 s of
// its rate, min(one bin's high quantile, half of what is left)). When pressed
// it offers all: a request is refused only if the tokens are nowhere.
type offerSpare struct{}

func (offerSpare) Offer(s Situation, press avantan.Press) Tokens {
	if s.Left <= 0 || press >= avantan.PressAll {
		return s.Left
	}
	keep := math.Max(4+0.75*s.Rate, math.Min(s.Forecast.Next, float64(s.Left)/2))
	return s.Left - min(s.Left, Tokens(min(keep, float64(MaxTokens))))
}
