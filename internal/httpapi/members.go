package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
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
	// Drain is what a site that drains still holds, as the site itself told; nil if it has
	// not.
	Drain *Drain `json:"drain,omitempty"`
	// Rescued reports whether all that a lost site held is back.
	Rescued bool `json:"rescued,omitempty"`
	// Remembered is what the answering site remembers of the data of a lost site; nil for
	// nothing.
	Remembered *Remembered `json:"remembered,omitempty"`
	// Node is the node that runs the site, and Term the number of the take-over by which it
	// does; empty and 0 for a site of a single process.
	Node string `json:"node,omitempty"`
	Term int64  `json:"term,omitempty"`
	// Standbys is how many other nodes follow, ready to take over.
	Standbys uint32 `json:"standbys,omitempty"`
}

// Drain is what a site that leaves still holds.
type Drain struct {
	// Entities, Leases and Claims count the entities of which the site holds tokens, its
	// leases, and the claims that it has not answered.
	Entities int64 `json:"entities"`
	Leases   int64 `json:"leases"`
	Claims   int64 `json:"claims"`
	// Tokens are those left at the site, of all entities; below zero for debts.
	Tokens int64 `json:"tokens"`
	// RecordsMS is the time in milliseconds until the last record of a request may be
	// forgotten; 0 once none is left.
	RecordsMS int64 `json:"records_ms"`
	// Unclear are the sites that still have something under way with the site.
	Unclear []string `json:"unclear"`
	// Emptied reports whether the site holds nothing any more.
	Emptied bool `json:"emptied"`
}

// ChangedMember is the answer to a change of a site.
type ChangedMember struct {
	// Member is the site after the change.
	Member Member `json:"member"`
	// Version counts the changes of the voters.
	Version uint64 `json:"version"`
	// DryRun is what would happen; nil unless the request was a dry run.
	DryRun *DryRun `json:"dry_run,omitempty"`
}

// JoinWaits is what a site with a seat waits for until it is a member and all entities have
// its voters; empty for nothing.
func (all *Members) JoinWaits(m *Member) string {
	waits := cmp.Or(m.WaitsFor, all.WaitsFor)
	if m.State == "joining" {
		waits = cmp.Or(waits, "the members to admit it")
	}
	return waits
}

// ListMembers returns the sites with a seat.
func (c *Client) ListMembers(ctx context.Context) (Members, error) {
	var m Members
	err := c.do(ctx, http.MethodGet, "/v1/members", nil, nil, &m)
	return m, err
}

// AddMember gives a site a seat. For an empty requestID samya makes an id, as for the other
// changes.
func (c *Client) AddMember(ctx context.Context, name, requestID string) (ChangedMember, error) {
	body := map[string]any{"name": name}
	if requestID != "" {
		body["request_id"] = requestID
	}
	var m ChangedMember
	err := c.do(ctx, http.MethodPost, "/v1/members", nil, body, &m)
	return m, err
}

// DrainMember has a member leave, and an heir take over; without an heir the next member by
// name.
func (c *Client) DrainMember(ctx context.Context, name, heir, requestID string) (ChangedMember, error) {
	body := map[string]any{}
	if heir != "" {
		body["heir"] = heir
	}
	return c.drain(ctx, name, body, requestID)
}

// KeepMember ends a drain: the site is a member again.
func (c *Client) KeepMember(ctx context.Context, name, requestID string) (ChangedMember, error) {
	return c.drain(ctx, name, map[string]any{"cancel": true}, requestID)
}

func (c *Client) drain(ctx context.Context, name string, body map[string]any, requestID string) (ChangedMember, error) {
	if requestID != "" {
		body["request_id"] = requestID
	}
	var m ChangedMember
	err := c.do(ctx, http.MethodPost, memberPath(name)+":drain", nil, body, &m)
	return m, err
}

// RemoveMember withdraws the seat of a site that joins, or with lost writes off a site whose
// data is lost for good.
func (c *Client) RemoveMember(ctx context.Context, name string, lost bool, requestID string) (ChangedMember, error) {
	q := url.Values{}
	if lost {
		q.Set("lost", "true")
	}
	if requestID != "" {
		q.Set("request_id", requestID)
	}
	var m ChangedMember
	err := c.do(ctx, http.MethodDelete, memberPath(name), q, nil, &m)
	return m, err
}

// RecoverCluster has the survivors go on after a majority was lost. The caller knows that
// the machines of the lost sites are destroyed.
func (c *Client) RecoverCluster(ctx context.Context, survivors, lost []string) (Recovery, error) {
	body := map[string]any{"survivors": survivors, "lost": lost, "machines_destroyed": true}
	var r Recovery
	err := c.do(ctx, http.MethodPost, "/v1/members:recover", nil, body, &r)
	return r, err
}

// Recovery has the sites that go on after the loss of a majority.
type Recovery struct {
	Sites []string `json:"sites"`
}

// memberPath is the path of a site.
func memberPath(name string) string { return "/v1/members/" + url.PathEscape(name) }
