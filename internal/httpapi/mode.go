package httpapi

import (
	"context"
	"net/http"
)

// Mode is the protocol under which the sites begin redistributions.
type Mode struct {
	// Protocol is "majority", "star" or "auto"; empty if none was decided yet.
	Protocol string `json:"protocol"`
	// Version counts the changes decided; 0 for none.
	Version uint64 `json:"version"`
}

// ModeStatus is the mode decided last, and the mode in force at each site.
type ModeStatus struct {
	Mode
	// Complete reports whether every site answered this read.
	Complete bool `json:"complete"`
	// Sites has an entry for each site, in the order of the names.
	Sites []SiteMode `json:"sites"`
}

// SiteMode is the mode in force at a site.
type SiteMode struct {
	// Site is the site's name.
	Site string `json:"site"`
	// Protocol is the protocol in force at the site.
	Protocol string `json:"protocol"`
	// Version is the version of the last change that the site knows; while it is 0 the
	// site's own setting is in force.
	Version uint64 `json:"version"`
	// Configured is the site's own setting.
	Configured string `json:"configured"`
	// Known reports whether the site answered.
	Known bool `json:"known"`
}

// GetMode reads the mode, over all sites.
func (c *Client) GetMode(ctx context.Context) (ModeStatus, error) {
	var m ModeStatus
	err := c.do(ctx, http.MethodGet, "/v1/mode", nil, nil, &m)
	return m, err
}

// SetMode changes the mode. An expectedVersion of zero means any; for an empty requestID
// samya makes an id.
func (c *Client) SetMode(ctx context.Context, protocol string, expectedVersion uint64, requestID string) (Mode, error) {
	body := map[string]any{"protocol": protocol}
	if expectedVersion != 0 {
		body["expected_version"] = expectedVersion
	}
	if requestID != "" {
		body["request_id"] = requestID
	}
	var m Mode
	err := c.do(ctx, http.MethodPut, "/v1/mode", nil, body, &m)
	return m, err
}
