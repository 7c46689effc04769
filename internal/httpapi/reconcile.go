package httpapi

import (
	"context"
	"net/http"
)

// Cut is what the sites' books of an entity hold to be in use.
type Cut struct {
	Entity
	// Cut names the cut for ReconcileEntity.
	Cut string `json:"cut"`
	// InUse is how many tokens the books hold to be in use: acquired of the entity itself,
	// not of entities below.
	InUse int64 `json:"in_use"`
	// Returning is how many of them may come back by themselves, as it is found out what
	// repeated requests have done.
	Returning int64 `json:"returning"`
	// Leased is how many tokens leases hold: the least that can be in use.
	Leased int64 `json:"leased"`
	// Surplus and WrittenOff are as in [Status].
	Surplus    int64 `json:"surplus"`
	WrittenOff int64 `json:"written_off"`
	// BegunMS and EndedMS bound the cut, in milliseconds since the Unix epoch. A token
	// that was in use at any moment between counts.
	BegunMS int64 `json:"begun_ms"`
	EndedMS int64 `json:"ended_ms"`
}

// Truth is the body of a reconciliation.
type Truth struct {
	// InUse is how many tokens of the entity itself were in use at the cut.
	InUse int64 `json:"in_use"`
	// Cut is the cut.
	Cut string `json:"cut"`
	// RequestID names the request; if empty, samya makes an id.
	RequestID string `json:"request_id,omitempty"`
}

// Reconciled is the answer to a reconciliation.
type Reconciled struct {
	Entity
	// MayExceedBy and MissingSites are as in Changed.
	MayExceedBy  int64    `json:"may_exceed_by"`
	MissingSites []string `json:"missing_sites"`
	// Returned is how many tokens came back into circulation; negative if tokens left.
	Returned int64 `json:"returned"`
}

// CutEntity counts what the books of an entity hold to be in use.
func (c *Client) CutEntity(ctx context.Context, name string) (Cut, error) {
	var cut Cut
	err := c.do(ctx, http.MethodGet, "/v1/entities/"+name+":cut", nil, nil, &cut)
	return cut, err
}

// ReconcileEntity makes the books of an entity say how many tokens are in use.
func (c *Client) ReconcileEntity(ctx context.Context, name string, truth Truth) (Reconciled, error) {
	var r Reconciled
	err := c.do(ctx, http.MethodPost, "/v1/entities/"+name+":reconcile", nil, truth, &r)
	return r, err
}
