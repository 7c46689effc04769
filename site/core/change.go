package core

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// limitChange is a change of an entity's limit as its sequence decides it. If Surplus is
// not 0, it sets Surplus tokens aside and leaves the limit as it is. If Truth is set, it
// reconciles the entity and leaves the limit as it is; Surplus is then notSurplus.
type limitChange struct {
	RequestID string `json:"request_id"`
	Body      uint64 `json:"body"`
	Limit     Tokens `json:"limit"`
	Expected  uint64 `json:"expected,omitempty"`
	Surplus   Tokens `json:"surplus,omitempty"`
	// View, if not 0, adopts a version of the roster; such a change does nothing else.
	View  uint16 `json:"view,omitempty"`
	Truth *truth `json:"truth,omitempty"`
	// Lost, if set, counts tokens of lost sites as written off, and leaves the limit as it
	// is; Surplus is then notSurplus.
	Lost *loss `json:"lost,omitempty"`
	// Rescue, if set, brings back what a lost site held, and leaves the limit as it is;
	// Surplus is then notSurplus.
	Rescue *rescue `json:"rescue,omitempty"`
	stored.ChangeTimes
}

// adoption is the change of an instance that adopts a version of the roster.
func adoption(version uint16) []byte {
	return append(strconv.AppendUint([]byte(adoptionBegins), uint64(version), 10), '}')
}

// adoptionBegins begins each adoption.
const adoptionBegins = `{"view":`

// adopts is the version that a change adopts; false for another change, or another form.
// Adoptions are many, and a decoder of JSON takes long.
func adopts(encoded []byte) (version uint16, is bool) {
	digits, begins := bytes.CutPrefix(encoded, []byte(adoptionBegins))
	digits, ends := bytes.CutSuffix(digits, []byte("}"))
	if !begins || !ends {
		return 0, false
	}
	n, err := strconv.ParseUint(string(digits), 10, 16)
	return uint16(n), err == nil && n > 0
}

// settledLimit is the effect of a limit change.
type settledLimit struct {
	stored.LimitResult
	// setAside is the number of tokens that the change sets aside.
	setAside Tokens
	// drift is the number of tokens that the books count as in use and that are not, and
	// unretired the number of tokens that are not written off any more. Each may be
	// negative.
	drift, unretired Tokens
	// retired is the number of tokens that are written off with the losses of sites up to
	// a version of the roster, appraised; 0 for none.
	retired   Tokens
	appraised uint16
	// returned is the version of the roster up to which losses are back; 0 for none.
	returned uint16
	// rescue is what a lost site's data brings back; nil for none.
	rescue *rescue
	// void says that the change does nothing: its request id was decided before, or its
	// time was over.
	void bool
	// view is the version of the roster that the change adopts; 0 for none.
	view uint16
}

// delta is the change of the entity's tokens in circulation.
func (r *settledLimit) delta(e *entity) Tokens {
	if r.void {
		return 0
	}
	return r.Limit - e.limit - r.setAside + r.drift + r.unretired
}

// classify works out the effect of a limit change on the present entity.
func (e *entity) classify(encoded []byte) (settledLimit, error) {
	if version, is := adopts(encoded); is {
		return adopted(e, version), nil
	}
	var ch limitChange
	if err := json.Unmarshal(encoded, &ch); err != nil {
		return settledLimit{}, fmt.Errorf("decoding a limit change: %w", err)
	}
	if ch.Limit < 0 || ch.Limit > input.MaxTokens || ch.Surplus > input.MaxTokens || !ch.fits() {
		return settledLimit{}, fmt.Errorf("limit change to %d, surplus %d: out of range", ch.Limit, ch.Surplus)
	}
	if ch.View > 0 {
		return adopted(e, ch.View), nil
	}
	r := settledLimit{LimitResult: stored.LimitResult{
		RequestID: ch.RequestID, Body: ch.Body, Limit: e.limit, Version: e.version, Asked: ch.Asked, Keep: ch.Keep,
	}}
	switch {
	case e.result(ch.RequestID) != nil, ch.Dead(e.clock()):
		r.void = true
	case ch.Expected != 0 && ch.Expected != e.version:
		r.Outcome = answer.Mismatch
	case ch.Lost != nil && (ch.Lost.Version > e.voters || ch.Lost.Version <= max(e.born, e.appraised)):
		r.Outcome = answer.Mismatch
	case ch.Lost != nil:
		r.Version, r.retired, r.appraised = e.version+1, ch.Lost.Tokens, ch.Lost.Version
	case ch.Rescue != nil:
		r.rescued(e, ch.Rescue)
	case ch.Truth != nil:
		counted := ch.Truth.told()
		r.Version, r.drift, r.unretired, r.returned = e.version+1, counted.Drift(), e.writtenOff(), e.appraised
		if rateOf(e) != nil {
			r.drift = 0
		}
	case ch.Surplus > 0:
		r.Version, r.setAside = e.version+1, ch.Surplus
	default:
		r.Limit, r.Version = ch.Limit, e.version+1
	}
	return r, nil
}

// adopted is a settled change without a result.
func adopted(e *entity, version uint16) settledLimit {
	r := settledLimit{void: true, view: version}
	r.Limit, r.Version, r.Outcome = e.limit, e.version, answer.OK
	return r
}

func (e *entity) settleLimit(r settledLimit) {
	if r.void {
		return
	}
	e.limit, e.version = r.Limit, r.Version
	// Only the answer to a repeat is remembered.
	e.setLimitResults(append(e.limitResults(), r.LimitResult))
	e.forgetResults()
}
