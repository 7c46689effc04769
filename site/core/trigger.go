package core

import "math"

// Reasons to begin a redistribution.
const (
	// reactiveReason: an acquire waits.
	reactiveReason = "reactive"
	// proactiveReason: tokens will run out soon.
	proactiveReason = "proactive"
	// debtReason: the site has less than none.
	debtReason = "debt"
	// aheadReason: another site expects to need more than it has.
	aheadReason = "ahead"
	// limitReason: a limit change waits, and nothing else.
	limitReason = "limit"
	// lentReason: without a majority, other sites hold what this one held.
	lentReason = "lent"
	// droughtReason: in a drought others tell of tokens.
	droughtReason = "drought"
)

// TriggerReasons lists the reasons to begin a redistribution, as events tell them.
func TriggerReasons() []string {
	return []string{reactiveReason, proactiveReason, debtReason, aheadReason, limitReason, lentReason, droughtReason}
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
		return reactiveReason
	case s.Changing:
		return limitReason
	case s.Left < 0:
		return debtReason
	}
	return ""
}

// Enough is for what waits only.
func (reactiveTrigger) Enough(_, _ float64) Tokens { return 0 }

const (
	// proactivePause is how long a site waits after a redistribution that it began
	// before it begins one that nobody waits for, in milliseconds.
	proactivePause = 1000
	// idleRate is the rate below which nobody has acquired anything for about a
	// second: tokens that nobody asks for do not run out. Without it, instances
	// that find nothing would set off the next ones for ever.
	idleRate = 0.1
	// lowWater is below how many tokens every site looks for more, unless that is
	// above a fiftieth of the limit.
	lowWater, lowWaterPart = 4, 50
	// lowWaterTime is for how long, in seconds, what is left should last at the present
	// pace: less than most redistributions take, as most bursts are over sooner than
	// their pace lets fear.
	lowWaterTime = 0.25
	// instanceTime is for how long, in seconds, what is left should last at the present
	// rate where instances alone bring tokens: some of them take as long.
	instanceTime = 0.7
	// lentPart is what part of the limit a site lacks of its own before it asks for it
	// back, and lentPause how long after a redistribution, in milliseconds.
	lentPart, lentPause = 500, 2000
	// burstPause is the pause in place of proactivePause where that pace is too high.
	burstPause = 300
	// worthwhilePart is what part of the limit others must hold for that, and of which
	// no more left is ever too little: a single large acquire is no burst.
	worthwhilePart = 20
)

// lowWaterTrigger is reactive, and begins an instance as well when the tokens
// are about to run out: with less left than
//
//	max(4, min(0.25 s of the pace, a twentieth of the limit))
//
// The pace, of the last moments, tells of a burst while most of it is still to come;
// that what is already over is not in it spares most of what a slower mean, a bin's
// quantile, or the memory of earlier bursts would begin for nothing. It does so at
// most once a second, or thrice in a burst, only while tokens are asked for, and only
// if, by what the others told, they hold a twentieth of the limit.
//
// Without direct transfers it does so with less than min(0.7 s of the rate, half of one
// bin's high quantile) as well: instances take longer. Without a majority it asks for
// what is the site's own and not needed by who has it.
type lowWaterTrigger struct{}

func (lowWaterTrigger) Due(s Situation) string {
	if reason := (reactiveTrigger{}).Due(s); reason != "" {
		return reason
	}
	if s.Lent >= max(1, s.Limit/lentPart) && s.SinceTrigger >= lentPause {
		return lentReason
	}
	mark, pause := min(lowWater, float64(s.Limit)/lowWaterPart), Tick(proactivePause)
	if soon := min(lowWaterTime*s.Pace, float64(s.Limit)/worthwhilePart); soon > mark {
		mark, pause = soon, burstPause
	}
	if !s.Direct {
		mark = max(mark, min(instanceTime*s.Rate, s.Forecast.Next/2))
	}
	if float64(s.Left) >= mark || !s.mayLookAhead(pause) || s.Told && s.Elsewhere < max(1, s.Limit/worthwhilePart) {
		return ""
	}
	return proactiveReason
}

// Enough leaves the limit out, which only lowers the mark.
func (lowWaterTrigger) Enough(pace, rate float64) Tokens {
	return tokensOf(max(lowWater, math.Ceil(max(lowWaterTime*pace, instanceTime*rate))))
}

// aheadTrigger is low-water, and has the site with most to spare begin an
// instance, which shares out anew what all have, before another site runs short
// that expects to need more than it has: at least a fiftieth of the limit more,
// and at most every ten seconds.
type aheadTrigger struct{}

func (aheadTrigger) Due(s Situation) string {
	if reason := (lowWaterTrigger{}).Due(s); reason != "" {
		return reason
	}
	if s.Lacking < max(1, s.Limit/lowWaterPart) || s.SinceTrigger < aheadPause {
		return ""
	}
	return aheadReason
}

// Enough is that of low-water: what others lack is looked at with each round of
// gossip.
func (aheadTrigger) Enough(pace, rate float64) Tokens { return lowWaterTrigger{}.Enough(pace, rate) }

// aheadPause is how long after it began a redistribution a site sees to others.
const aheadPause = 10_000

// paperTrigger is the paper's. It looks at the forecast only with at most a
// fifth left of what the last redistribution left the site with, or creation if
// there was none (Section 5.1), and begins an instance if the net demand
// expected over the horizon is more than what is left (Section 4.2). The paper
// looks after each acquire it serves: here that is while tokens are asked for, and
// at most once a second.
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

// Enough does not know: the last grant may have been of any size.
func (paperTrigger) Enough(_, _ float64) Tokens { return math.MaxInt64 }

// mayLookAhead reports whether a redistribution may begin that nobody waits for, so
// long after the last one.
func (s *Situation) mayLookAhead(pause Tick) bool {
	return s.SinceTrigger >= pause && s.Rate >= idleRate
}
