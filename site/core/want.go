package core

// Want says how much of an entity a site wants to hold. What it puts into an
// instance, and how much it asks others for, follows from that and what it has.
type Want interface {
	// Target returns what to hold beside what waits, and the part of it that is
	// needed at even odds.
	Target(s Situation) (target, median Tokens)
	// Waiting returns how much of what waits the want counts, from the first
	// waiting acquire on: all, or the first one.
	Waiting(s Situation) Tokens
}

var wants = map[string]Want{
	"paper":    paperWant{},
	"quantile": quantileWant{},
}

// WantNames lists the wants.
func WantNames() []string { return namesOf(wants) }

// quantileWant covers all that waits, and the peak of the demand over the horizon
// of a redistribution at a high quantile. The median is that of the peak. Both
// are at least a second of the present rate: a forecast is of bins that are over.
// Where tokens are scarce it covers two seconds: what one site keeps for later,
// another one refuses now. Without a majority it covers less, unless more is the site's
// own: what it has borrowed is lost to the others if it crashes.
type quantileWant struct{}

func (quantileWant) Target(s Situation) (target, median Tokens) {
	median = tokensOf(max(s.Forecast.Median, s.Rate))
	if s.Scarce || s.Apart {
		time := scarceTime
		if s.Apart {
			time = loanTime
		}
		target = max(tokensOf(4+time*s.Rate), s.Own)
		return target, min(target, median)
	}
	return max(tokensOf(s.Forecast.High), median), median
}

// scarceTime is how long, in seconds, what a site wants lasts where tokens are scarce,
// and loanTime how long what it borrows without a majority.
const scarceTime, loanTime = 2.0, 0.75

func (quantileWant) Waiting(s Situation) Tokens { return s.Queued }

// paperWant is that of the paper, where TokensWanted is what a site wants beyond
// what it has left: what the acquire asks for that begins an instance, if one
// waits (equation 5), else the net demand expected less what is left (equation
// 4). It says nothing of medians.
type paperWant struct{}

func (paperWant) Target(s Situation) (target, median Tokens) {
	target = tokensOf(s.Forecast.Expected)
	if s.Queued > 0 {
		target = max(0, s.Left)
	}
	return target, target
}

func (paperWant) Waiting(s Situation) Tokens { return s.First }

// tokensOf is a forecast in tokens.
func tokensOf(forecast float64) Tokens {
	return Tokens(min(max(0, forecast), float64(MaxTokens)))
}
