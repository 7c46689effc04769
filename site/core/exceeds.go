package core

import (
	"github.com/samya-db/samya/site/core/answer"
)

// No site can ever grant more tokens of an entity than the limit of the entity or of any
// of its ancestors. An acquire of more that is content with nothing less is refused at
// once: it is no demand, does not wait, and has no tokens moved. An acquire that is
// content with less asks for the lowest limit at most. The site goes by the limits that
// it knows. While an acquire waits the limits may change, and the same rule holds.

// exceeds returns the charge with the limit that an acquire exceeds by most, the first of
// several; nil if the acquire exceeds none.
func (ch charge) exceeds(r *request) *charged {
	var most *charged
	for i := range ch {
		if x := &ch[i]; x.excess(r) > 0 && (most == nil || x.excess(r) > most.excess(r)) {
			most = x
		}
	}
	return most
}

// excess is the number of tokens that an acquire needs beyond the limit, at least.
func (x *charged) excess(r *request) Tokens { return min(r.least, x.tokens) - x.of.limit }

// limited lowers the charge of an entity and its ancestors to the lowest limit. A request
// that takes different numbers of tokens is content with nothing less, and stays as it
// is.
func (ch charge) limited(r *request) {
	if r.parts != nil {
		return
	}
	most := ch[0].tokens
	for i := range ch {
		most = min(most, ch[i].of.limit)
	}
	if most < ch[0].tokens {
		ch.lower(most)
	}
}

// exceeded is the answer to an acquire of more than a limit.
func exceeded(over *charged) answer.Answer {
	return answer.Answer{Code: answer.ExceedsLimit, Tokens: over.of.limit, Left: over.of.usable(), Lacking: over.of.name}
}
