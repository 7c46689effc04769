package httpapi

import (
	"context"
	"net/http"
	"net/url"

	"github.com/samya-db/samya/internal/inspection"
)

// InspectSites reads the figures of the partitions of all sites, or only of the named
// site.
func (c *Client) InspectSites(ctx context.Context, site string) (inspection.Status, error) {
	q := url.Values{}
	if site != "" {
		q.Set("site", site)
	}
	var s inspection.Status
	err := c.do(ctx, http.MethodGet, "/v1/sites:inspect", q, nil, &s)
	return s, err
}
