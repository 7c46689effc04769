package httpapi

import (
	"context"
	"net/http"
	"net/url"
)

// CreateEntityBelow creates an entity below parent; an empty parent means none.
func (c *Client) CreateEntityBelow(ctx context.Context, parent, name string, limit int64, requestID string) (Entity, error) {
	body := map[string]any{"name": name, "limit": limit}
	if parent != "" {
		body["parent"] = parent
	}
	if requestID != "" {
		body["request_id"] = requestID
	}
	var e Entity
	err := c.do(ctx, http.MethodPost, "/v1/entities", nil, body, &e)
	return e, err
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
