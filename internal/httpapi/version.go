package httpapi

import (
	"context"
	"net/http"
)

// Version is the version of the cluster.
type Version struct {
	// Version is the version in whose form the sites write messages and data.
	Version uint32 `json:"version"`
}

// VersionStatus is the version of the cluster, and what each site speaks.
type VersionStatus struct {
	Version
	// Complete reports whether every site answered this read.
	Complete bool `json:"complete"`
	// Sites has an entry for each site, in the order of the names.
	Sites []SiteVersion `json:"sites"`
}

// SiteVersion is what a site knows and speaks.
type SiteVersion struct {
	// Site is the site's name.
	Site string `json:"site"`
	// Version is the version of the cluster that the site knows.
	Version uint32 `json:"version"`
	// Oldest and Newest are the versions that the site's build speaks.
	Oldest uint32 `json:"oldest"`
	Newest uint32 `json:"newest"`
	// Build is the build, as its maker named it.
	Build string `json:"build"`
	// Known reports whether the site answered; if not, Problem says why.
	Known   bool   `json:"known"`
	Problem string `json:"problem"`
}

// GetVersion reads the version of the cluster, over all sites.
func (c *Client) GetVersion(ctx context.Context) (VersionStatus, error) {
	var v VersionStatus
	err := c.do(ctx, http.MethodGet, "/v1/version", nil, nil, &v)
	return v, err
}

// RaiseVersion raises the version of the cluster to a version, one above the present. For
// an empty requestID samya makes an id.
func (c *Client) RaiseVersion(ctx context.Context, to uint32, requestID string) (Version, error) {
	body := map[string]any{"version": to}
	if requestID != "" {
		body["request_id"] = requestID
	}
	var v Version
	err := c.do(ctx, http.MethodPut, "/v1/version", nil, body, &v)
	return v, err
}
