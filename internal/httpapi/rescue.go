package httpapi

import (
	"context"
	"net/http"
	"net/url"
)

// Estate is the body of a rescue of an entity: what a lost site held, as its data tells.
type Estate struct {
	// Site is the lost site.
	Site string `json:"site"`
	// Generation is the entity's generation.
	Generation uint64 `json:"generation"`
	// Net are the tokens of the entity itself, not of entities below, that are out through
	// the site. Held are the tokens left and out, with those of entities below.
	Net  int64 `json:"net"`
	Held int64 `json:"held"`
	// Leases are the tokens of Net that leases hold, in a few parts.
	Leases []HeldLeases `json:"leases,omitempty"`
	// RequestID names the request; if empty, samya makes an id.
	RequestID string `json:"request_id,omitempty"`
}

// HeldLeases are leases of a lost site.
type HeldLeases struct {
	Tokens int64 `json:"tokens"`
	// UntilMS is the end of the last of them, in milliseconds since the Unix epoch.
	UntilMS int64 `json:"until_ms"`
}

// Rescued is the answer to a rescue of an entity.
type Rescued struct {
	Entity
	// Returned is how many tokens are available again; 0 if that was done before, or nothing
	// was written off.
	Returned int64 `json:"returned"`
	// MissingSites are the sites that are not known to have applied the change.
	MissingSites []string `json:"missing_sites"`
}

// Remembered is a site's memory of another site's data.
type Remembered struct {
	// Incarnation names the data: 16 hexadecimal digits.
	Incarnation string `json:"incarnation"`
	// Commit is the last commit that the site has heard of.
	Commit uint64 `json:"commit"`
	// Served reports whether the data has told of a commit.
	Served bool `json:"served"`
}

// RescueEntity brings back what a lost site held of an entity.
func (c *Client) RescueEntity(ctx context.Context, name string, estate Estate) (Rescued, error) {
	var r Rescued
	err := c.do(ctx, http.MethodPost, "/v1/entities/"+name+":rescue", nil, estate, &r)
	return r, err
}

// RescueMember notes that all that a lost site held is back.
func (c *Client) RescueMember(ctx context.Context, name, requestID string) (ChangedMember, error) {
	body := map[string]any{}
	if requestID != "" {
		body["request_id"] = requestID
	}
	var m ChangedMember
	err := c.do(ctx, http.MethodPost, memberPath(name)+":rescue", nil, body, &m)
	return m, err
}

// MembersAt returns the sites with a seat as a site knows them.
func (c *Client) MembersAt(ctx context.Context, site string) (Members, error) {
	var m Members
	err := c.do(ctx, http.MethodGet, "/v1/members", url.Values{"site": {site}}, nil, &m)
	return m, err
}
