package httpapi

import (
	"context"
	"net/http"
)

// Members are the sites with a seat in the cluster.
type Members struct {
	// Version counts the changes of the voters; the founders' is 1.
	Version uint64 `json:"version"`
	// Behind is how many entities have not adopted the present voters yet.
	Behind uint64 `json:"behind"`
	// WaitsFor is what the next change of the voters waits for; empty for nothing.
	WaitsFor string `json:"waits_for"`
	// AnsweredBy is the process that answered.
	AnsweredBy string `json:"answered_by"`
	// Members are in the order of their names.
	Members []Member `json:"members"`
}

// Member is a site with a seat.
type Member struct {
	// Name is the site's name.
	Name string `json:"name"`
	// State is "joining", "member", "draining", "gone" or "lost"; "unknown" for a state
	// that the app manager does not know.
	State string `json:"state"`
	// Knows reports whether the site is known to know its state.
	Knows bool `json:"knows"`
	// Region is where the site stands; empty if unknown.
	Region string `json:"region"`
	// Address is where the site's gRPC API listens; empty if unknown.
	Address string `json:"address"`
	// Health is as that of a Site; "unknown" unless the site is a member or drains.
	Health string `json:"health"`
	// WaitsFor is what the site still waits for; empty for nothing.
	WaitsFor string `json:"waits_for"`
	// Heir is the member that takes over from a site that drains or has left; empty for
	// none.
	Heir string `json:"heir,omitempty"`
}

// AddedMember is the answer to the addition of a site.
type AddedMember struct {
	// Member is the site after the change.
	Member Member `json:"member"`
	// Version counts the changes of the voters.
	Version uint64 `json:"version"`
}

// ListMembers returns the sites with a seat.
func (c *Client) ListMembers(ctx context.Context) (Members, error) {
	var m Members
	err := c.do(ctx, http.MethodGet, "/v1/members", nil, nil, &m)
	return m, err
}

// AddMember gives a site a seat. For an empty requestID samya makes an id.
func (c *Client) AddMember(ctx context.Context, name, requestID string) (AddedMember, error) {
	body := map[string]any{"name": name}
	if requestID != "" {
		body["request_id"] = requestID
	}
	var m AddedMember
	err := c.do(ctx, http.MethodPost, "/v1/members", nil, body, &m)
	return m, err
}
