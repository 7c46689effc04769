package httpapi

import (
	"context"
	"net/http"
	"net/url"
)

// Creation is an entity to create.
type Creation struct {
	Name string `json:"name"`
	// Limit is the most tokens that may be out at once, of a rate quota in each window.
	Limit int64 `json:"limit"`
	// Parent is the entity to stand below; empty for none.
	Parent string `json:"parent,omitempty"`
	// Per is the period of a rate quota, such as "1m"; empty for other entities. Kind is
	// "window", "bucket" or "sliding", or empty for window.
	Per  string `json:"per,omitempty"`
	Kind string `json:"kind,omitempty"`
	// TimeZone is the time zone of windows of days or months; empty for UTC.
	TimeZone string `json:"time_zone,omitempty"`
	// Durable says whether grants of a rate quota are durable; nil for other entities, and
	// in a creation for the default.
	Durable *bool `json:"durable,omitempty"`
	// Keys: the entity is a template, and each name below it has a quota to itself.
	Keys bool `json:"keys,omitempty"`
	// RequestID names the request; if empty, samya makes an id.
	RequestID string `json:"request_id,omitempty"`
}

// Create creates an entity.
func (c *Client) Create(ctx context.Context, e Creation) (Entity, error) {
	var created Entity
	err := c.do(ctx, http.MethodPost, "/v1/entities", nil, e, &created)
	return created, err
}

// Reset is the outcome of a reset.
type Reset struct {
	// Returned is the number of tokens that came back.
	Returned int64 `json:"returned"`
	// MissingSites did not answer, or leave.
	MissingSites []string `json:"missing_sites"`
}

// ResetEntity has the tokens of a rate quota, or of a key, come back at once.
func (c *Client) ResetEntity(ctx context.Context, name string) (Reset, error) {
	var r Reset
	err := c.do(ctx, http.MethodPost, "/v1/entities/"+name+":reset", nil, map[string]any{}, &r)
	return r, err
}

// MoveEntity moves an entity, with all entities below it, below parent; an empty parent
// means none.
func (c *Client) MoveEntity(ctx context.Context, name, parent string) (Entity, error) {
	var e Entity
	err := c.do(ctx, http.MethodPost, "/v1/entities/"+name+":move", nil, map[string]any{"parent": parent}, &e)
	return e, err
}

// DeleteSubtree deletes an entity and all entities below it.
func (c *Client) DeleteSubtree(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodDelete, "/v1/entities/"+name, url.Values{"subtree": {"true"}}, nil, nil)
}
