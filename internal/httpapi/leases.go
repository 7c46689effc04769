package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// ListLeases reads a page of the leases of a holder and of an entity; empty means all. A
// page size of zero means the server's default.
func (c *Client) ListLeases(ctx context.Context, holder, entity string, pageSize int, pageToken string) (LeasePage, error) {
	q := url.Values{}
	for k, v := range map[string]string{"holder": holder, "entity": entity, "page_token": pageToken} {
		if v != "" {
			q.Set(k, v)
		}
	}
	if pageSize != 0 {
		q.Set("page_size", strconv.Itoa(pageSize))
	}
	var p LeasePage
	err := c.do(ctx, http.MethodGet, "/v1/leases", q, nil, &p)
	return p, err
}

// RenewLease gives a lease another time to live, a duration such as "30s"; empty:
// as long as before.
func (c *Client) RenewLease(ctx context.Context, lease, ttl string) (Lease, error) {
	body := map[string]any{"lease": lease}
	if ttl != "" {
		body["ttl"] = ttl
	}
	var l Lease
	err := c.do(ctx, http.MethodPost, "/v1/leases:renew", nil, body, &l)
	return l, err
}

// CommitLease keeps tokens of a lease, 0 for all, and gives the rest back.
func (c *Client) CommitLease(ctx context.Context, lease string, tokens int64, requestID string) (Committed, error) {
	body := map[string]any{"lease": lease}
	if tokens != 0 {
		body["tokens"] = tokens
	}
	if requestID != "" {
		body["request_id"] = requestID
	}
	var m Committed
	err := c.do(ctx, http.MethodPost, "/v1/leases:commit", nil, body, &m)
	return m, err
}
