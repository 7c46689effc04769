package policy

import (
	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core/input"
)

// Want decides how many tokens of an entity a site wants to hold. With the tokens that
// the site has, this gives its contribution to an instance and the number it asks others
// for.
type Want interface {
	// Target returns the number of tokens to hold beside the waiting acquires, and the
	// part of it needed at even odds.
	Target(s Situation) (target, median avantan.Tokens)
	// Waiting returns the tokens of waiting acquires that the want counts, in the order
	// of waiting: all, or only the first acquire's.
	Waiting(s Situation) avantan.Tokens
}

var wants = map[string]Want{
	"paper":    paperWant{},
	"quantile": quantileWant{},
}

// WantNames lists the wants.
func WantNames() []string { return namesOf(wants) }

// quantileWant covers all waiting acquires, and the peak of the demand over the horizon
// of a redistribution at a high quantile. The median is the peak's median. Both are at
// least a second of the present rate: a forecast is of bins that are over. Where tokens
// are scarce quantileWant covers two seconds: tokens that a site keeps for later make
// another site refuse now. Without a majority it covers less, but at least the site's own
// tokens: other sites lose borrowed tokens if the borrower crashes.
type quantileWant struct{}

func (quantileWant) Target(s Situation) (target, median avantan.Tokens) {
	median = tokensOf(max(s.Forecast.Median, s.Rate))
	if s.Scarce || s.NoQuorum {
		time := scarceTime
		if s.NoQuorum {
			time = loanTime
		}
		target = max(tokensOf(4+time*s.Rate), s.Own)
		return target, min(target, median)
	}
	return max(tokensOf(s.Forecast.High), median), median
}

// scarceTime is the time in seconds that a site's target lasts where tokens are scarce,
// loanTime the time that borrowed tokens last without a majority.
const scarceTime, loanTime = 2.0, 0.75

func (quantileWant) Waiting(s Situation) avantan.Tokens { return s.Queued }

// paperWant is the paper's want, where TokensWanted is the number of tokens a site wants
// beyond its tokens left. If an acquire waits, this is the number that the acquire
// beginning the instance asks for (equation 5), else the expected net demand less the
// tokens left (equation 4). The paper says nothing about medians.
type paperWant struct{}

func (paperWant) Target(s Situation) (target, median avantan.Tokens) {
	target = tokensOf(s.Forecast.Expected)
	if s.Queued > 0 {
		target = max(0, s.Left)
	}
	return target, target
}

func (paperWant) Waiting(s Situation) avantan.Tokens { return s.First }

// tokensOf is a forecast as a number of tokens, at most MaxTokens.
func tokensOf(forecast float64) avantan.Tokens {
	return avantan.Tokens(min(max(0, forecast), float64(input.MaxTokens)))
}
