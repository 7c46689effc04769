package policy

import (
	"math"

	"github.com/samya-db/samya/avantan"
)

// Reasons to begin a redistribution.
const (
	// reactiveReason: an acquire waits.
	ReactiveReason = "reactive"
	// proactiveReason: tokens will run out soon.
	proactiveReason = "proactive"
	// debtReason: the site is in debt.
	DebtReason = "debt"
	// aheadReason: another site expects to need more than it has.
	AheadReason = "ahead"
	// limitReason: only a limit change waits.
	LimitReason = "limit"
	// lentReason: without a majority, other sites hold tokens of this site.
	lentReason = "lent"
	// ExhaustionReason: in an exhaustion others report tokens.
	ExhaustionReason = "drought"
)

// TriggerReasons lists the reasons to begin a redistribution, as in events.
func TriggerReasons() []string {
	return []string{ReactiveReason, proactiveReason, DebtReason, AheadReason, LimitReason, lentReason, ExhaustionReason}
}

var triggers = map[string]Trigger{
	"ahead":     aheadTrigger{},
	"low-water": lowWaterTrigger{},
	"paper":     paperTrigger{},
	"reactive":  reactiveTrigger{},
}

// reactiveTrigger begins an instance when an acquire waits, when the site is in
// debt, or when a limit is to be changed (the paper, Section 4.2).
type reactiveTrigger struct{}

func (reactiveTrigger) Due(s Situation) string {
	switch {
	case s.Queued > 0:
		return ReactiveReason
	case s.Changing:
		return LimitReason
	case s.Left < 0:
		return DebtReason
	}
	return ""
}

// Enough is 0: Due looks at nothing but waiting requests and debts.
func (reactiveTrigger) Enough(_, _ float64) avantan.Tokens { return 0 }

const (
	// proactivePause is the time in milliseconds that a site waits after a redistribution
	// of its own before it begins another that no acquire waits for.
	proactivePause = 1000
	// idleRate is the rate below which nobody has acquired anything for about a second:
	// tokens that nobody asks for do not run out. Without it, instances that find nothing
	// would set off the next ones for ever.
	IdleRate = 0.1
	// lowWater is the number of tokens below which every site looks for more, unless it
	// is more than a fiftieth of the limit.
	lowWater, lowWaterPart = 4, 50
	// lowWaterTime is the time in seconds that the tokens left should last at the present
	// pace. Most redistributions take longer, but most bursts end sooner than their pace
	// suggests.
	lowWaterTime = 0.25
	// instanceTime is the time in seconds that the tokens left should last at the present
	// rate where only instances bring tokens: some instances take that long.
	instanceTime = 0.7
	// A site that lacks a lentPart-th of the limit of its own asks for it back, at the
	// earliest lentPause milliseconds after a redistribution.
	lentPart, lentPause = 500, 2000
	// burstPause replaces proactivePause, in milliseconds, where the pace is too high.
	burstPause = 300
	// The pace asks for tokens with less than a worthwhilePart-th of the limit left: a
	// single large acquire is no burst. Others must hold at least that much.
	WorthwhilePart = 20
)

// lowWaterTrigger is reactive, and also begins an instance when the tokens are about to
// run out: with less left than
//
//	max(min(4, a fiftieth of the limit), min(0.25 s of the pace, a twentieth of the limit))
//
// The pace, of the last moments, shows a burst while most of it is still to come. It
// forgets a burst that is over, so it begins few useless instances; a slower mean, a
// bin's quantile, or the memory of earlier bursts would begin most of them. The trigger
// acts at most once a second, or thrice in a burst, and only while tokens are asked for.
// By their reports the others must hold a twentieth of the limit.
//
// Without direct transfers the trigger also acts with less left than min(0.7 s of the
// rate, half of one bin's high quantile): instances take longer. Without a majority it
// asks other sites for tokens of this site that they do not need.
type lowWaterTrigger struct{}

func (lowWaterTrigger) Due(s Situation) string {
	if reason := (reactiveTrigger{}).Due(s); reason != "" {
		return reason
	}
	if s.Lent >= max(1, s.Limit/lentPart) && s.SinceTrigger >= lentPause {
		return lentReason
	}
	mark, pause := min(lowWater, float64(s.Limit)/lowWaterPart), avantan.Tick(proactivePause)
	if soon := min(lowWaterTime*s.Pace, float64(s.Limit)/WorthwhilePart); soon > mark {
		mark, pause = soon, burstPause
	}
	if !s.Direct {
		mark = max(mark, min(instanceTime*s.Rate, s.Forecast.Next/2))
	}
	if float64(s.Left) >= mark || !s.mayLookAhead(pause) || s.Told && s.Elsewhere < max(1, s.Limit/WorthwhilePart) {
		return ""
	}
	return proactiveReason
}

// Enough ignores the limit, which only lowers the mark.
func (lowWaterTrigger) Enough(pace, rate float64) avantan.Tokens {
	return tokensOf(max(lowWater, math.Ceil(max(lowWaterTime*pace, instanceTime*rate))))
}

// aheadTrigger is low-water, and also acts before another site runs short: the site with
// most to spare begins an instance, which shares out anew the tokens of all. The other
// site must expect to need at least a fiftieth of the limit more than it has. The trigger
// acts so at most every ten seconds.
type aheadTrigger struct{}

func (aheadTrigger) Due(s Situation) string {
	if reason := (lowWaterTrigger{}).Due(s); reason != "" {
		return reason
	}
	if s.Lacking < max(1, s.Limit/lowWaterPart) || s.SinceTrigger < aheadPause {
		return ""
	}
	return AheadReason
}

// Enough is the bound of low-water: each round of gossip looks at the lack of others.
func (aheadTrigger) Enough(pace, rate float64) avantan.Tokens {
	return lowWaterTrigger{}.Enough(pace, rate)
}

// aheadPause is the time in milliseconds after a redistribution of its own before a site
// provides for others.
const aheadPause = 10_000

// paperTrigger is the paper's trigger. It looks at the forecast only with at most a fifth
// left of the tokens after the last redistribution, or after creation if there was none
// (Section 5.1). It begins an instance if the net demand expected over the horizon
// exceeds the tokens left (Section 4.2). The paper looks after each acquire it serves;
// this trigger looks while tokens are asked for, and at most once a second.
type paperTrigger struct{}

func (paperTrigger) Due(s Situation) string {
	if reason := (reactiveTrigger{}).Due(s); reason != "" {
		return reason
	}
	if s.Left > s.LastGrant/5 || !s.mayLookAhead(proactivePause) || s.Forecast.Expected <= float64(s.Left) {
		return ""
	}
	return proactiveReason
}

// Enough knows no bound: the last grant may have been of any size.
func (paperTrigger) Enough(_, _ float64) avantan.Tokens { return math.MaxInt64 }

// mayLookAhead reports whether a redistribution that no acquire waits for may begin, at
// least pause after the last redistribution.
func (s *Situation) mayLookAhead(pause avantan.Tick) bool {
	return s.SinceTrigger >= pause && s.Rate >= IdleRate
}
