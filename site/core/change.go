package core

import (
	"encoding/json"
	"fmt"
)

// limitChange is a change of an entity's limit as its sequence decides it. If Surplus is
// not 0, it sets Surplus tokens aside and leaves the limit as it is.
type limitChange struct {
	RequestID string `json:"request_id"`
	Body      uint64 `json:"body"`
	Limit     Tokens `json:"limit"`
	Expected  uint64 `json:"expected,omitempty"`
	Surplus   Tokens `json:"surplus,omitempty"`
	ChangeTimes
}

// LimitResult is the outcome of a decided limit change, kept so that a repeat of its
// request id gets the same answer at every site.
type LimitResult struct {
	RequestID string `json:"request_id"`
	Body      uint64 `json:"body"`
	// Outcome is OK or Mismatch.
	Outcome Code `json:"outcome"`
	// Limit and Version are the entity's values after the change.
	Limit   Tokens `json:"limit"`
	Version uint64 `json:"version"`
	// Asked and Keep are as in ChangeTimes.
	Asked int64 `json:"asked,omitempty"`
	Keep  int64 `json:"keep,omitempty"`
	// setAside is the number of tokens that the change sets aside.
	setAside Tokens
	// void says that the change does nothing: its request id was decided before, or its
	// time was over.
	void bool
}

// delta is the change of the entity's tokens in circulation.
func (r *LimitResult) delta(e *entity) Tokens {
	if r.void {
		return 0
	}
	return r.Limit - e.limit - r.setAside
}

// judge works out the effect of a limit change on the present entity.
func (e *entity) judge(encoded []byte) (LimitResult, error) {
	var ch limitChange
	if err := json.Unmarshal(encoded, &ch); err != nil {
		return LimitResult{}, fmt.Errorf("decoding a limit change: %w", err)
	}
	if ch.Limit < 0 || ch.Limit > MaxTokens || ch.Surplus < 0 || ch.Surplus > MaxTokens {
		return LimitResult{}, fmt.Errorf("limit change to %d, surplus %d: out of range", ch.Limit, ch.Surplus)
	}
	r := LimitResult{
		RequestID: ch.RequestID, Body: ch.Body, Limit: e.limit, Version: e.version, Asked: ch.Asked, Keep: ch.Keep,
	}
	switch {
	case e.result(ch.RequestID) != nil, ch.dead(e.clock()):
		r.void = true
	case ch.Expected != 0 && ch.Expected != e.version:
		r.Outcome = Mismatch
	case ch.Surplus > 0:
		r.Version, r.setAside = e.version+1, ch.Surplus
	default:
		r.Limit, r.Version = ch.Limit, e.version+1
	}
	return r, nil
}

func (e *entity) settleLimit(r LimitResult) {
	if r.void {
		return
	}
	e.limit, e.version = r.Limit, r.Version
	// Only the answer to a repeat is remembered.
	r.setAside = 0
	e.setLimitResults(append(e.limitResults(), r))
	e.forgetResults()
}
