package httpapi

import (
	"context"
	"net/http"
	"net/url"

	"github.com/samya-db/samya/internal/inspection"
)

// InspectSites tells what the partitions of all sites do, or of one that is named.
func (c *Client) InspectSites(ctx context.Context, site string) (inspection.Status, error) {
	q := url.Values{}
	if site != "" {
		q.Set("site", site)
	}
	var s inspection.Status
	err := c.do(ctx, http.MethodGet, "/v1/sites:inspect", q, nil, &s)
	return s, err
}
