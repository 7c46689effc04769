// Package httpapi speaks the HTTP API of an app manager, for samya's own command line,
// demo and load generators. It never repeats a request by itself, because only the caller
// knows the effect of a repeat.
package httpapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/samya-db/samya/internal/apierr"
)

// maxAnswer bounds the bytes read of an answer: a page of a thousand entities is far
// below it.
const maxAnswer = 8 << 20

// Client speaks to an app manager. It may be used from several goroutines.
type Client struct {
	base string
	http *http.Client
}

// UnreachableError says that no answer came.
type UnreachableError struct {
	// Addr is the app manager's address.
	Addr string
	// Sent reports whether the request may have been sent. If not, it was provably not
	// executed.
	Sent bool
	// Err is the cause.
	Err error
}

// Error names the address and the cause.
func (e *UnreachableError) Error() string {
	if !e.Sent {
		return fmt.Sprintf("reach %s: %v", e.Addr, e.Err)
	}
	return fmt.Sprintf("no answer from %s: %v", e.Addr, e.Err)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// ForeignAnswerError says that a server answered that does not speak this API.
type ForeignAnswerError struct {
	// Addr is the address asked.
	Addr string
	// Status is the HTTP status of the answer.
	Status int
	// Err is the fault in the answer.
	Err error
}

// Error names the address and the fault in the answer.
func (e *ForeignAnswerError) Error() string {
	return fmt.Sprintf("the answer of %s (status %d) is not one of samya's: %v", e.Addr, e.Status, e.Err)
}

// Unwrap returns the fault in the answer.
func (e *ForeignAnswerError) Unwrap() error { return e.Err }

// New returns a client of the app manager at addr: "http://host:port" or
// "host:port". A nil transport means [http.DefaultTransport].
func New(addr string, transport http.RoundTripper) (*Client, error) {
	base := addr
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return nil, fmt.Errorf("address %q: %w", addr, err)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("address %q: the scheme must be http or https", addr)
	case u.Host == "":
		return nil, fmt.Errorf("address %q: no host; want http://host:port", addr)
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("address %q: nothing may follow the port; want http://host:port", addr)
	}
	return &Client{base: u.Scheme + "://" + u.Host, http: &http.Client{Transport: transport}}, nil
}

// Addr returns the address the client speaks to, "http://host:port".
func (c *Client) Addr() string { return c.base }

// CreateEntity creates an entity.
func (c *Client) CreateEntity(ctx context.Context, name string, limit int64, requestID string) (Entity, error) {
	return c.Create(ctx, Creation{Name: name, Limit: limit, RequestID: requestID})
}

// GetEntity reads an entity and its books, over all sites.
func (c *Client) GetEntity(ctx context.Context, name string) (Status, error) {
	return c.ReadEntity(ctx, name, "", 0)
}

// ReadEntity reads an entity with a consistency, "local", "bounded" or "exact";
// empty: the server's default. A max age of zero means the server's default.
func (c *Client) ReadEntity(ctx context.Context, name, consistency string, maxAge time.Duration) (Status, error) {
	q := url.Values{}
	if consistency != "" {
		q.Set("consistency", consistency)
	}
	if maxAge != 0 {
		q.Set("max_age", maxAge.String())
	}
	var s Status
	err := c.do(ctx, http.MethodGet, "/v1/entities/"+name, q, nil, &s)
	return s, err
}

// ListEntities reads a page of the entities with names that start with prefix. A page
// size of zero means the server's default.
func (c *Client) ListEntities(ctx context.Context, prefix string, pageSize int, pageToken string) (Page, error) {
	q := url.Values{}
	if prefix != "" {
		q.Set("prefix", prefix)
	}
	if pageSize != 0 {
		q.Set("page_size", strconv.Itoa(pageSize))
	}
	if pageToken != "" {
		q.Set("page_token", pageToken)
	}
	var p Page
	err := c.do(ctx, http.MethodGet, "/v1/entities", q, nil, &p)
	return p, err
}

// UpdateEntity sets an entity's limit.
func (c *Client) UpdateEntity(ctx context.Context, name string, change Change) (Changed, error) {
	var e Changed
	err := c.do(ctx, http.MethodPatch, "/v1/entities/"+name, nil, change, &e)
	return e, err
}

// DeleteEntity deletes an entity.
func (c *Client) DeleteEntity(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodDelete, "/v1/entities/"+name, nil, nil, nil)
}

// Acquire takes tokens of an entity.
func (c *Client) Acquire(ctx context.Context, entity string, r Request) (Moved, error) {
	var m Moved
	err := c.do(ctx, http.MethodPost, "/v1/entities/"+entity+":acquire", nil, r, &m)
	return m, err
}

// Release gives tokens of an entity back.
func (c *Client) Release(ctx context.Context, entity string, r Request) (Moved, error) {
	var m Moved
	err := c.do(ctx, http.MethodPost, "/v1/entities/"+entity+":release", nil, r, &m)
	return m, err
}

// ListSites returns the sites of the cluster.
func (c *Client) ListSites(ctx context.Context) (Sites, error) {
	var s Sites
	err := c.do(ctx, http.MethodGet, "/v1/sites", nil, nil, &s)
	return s, err
}

// WatchEntity calls each with each state of an entity, until the entity is deleted, ctx
// ends or each fails. It begins after the resume token; empty: with the present state.
func (c *Client) WatchEntity(ctx context.Context, name, resumeToken string, each func(State) error) error {
	q := url.Values{}
	if resumeToken != "" {
		q.Set("resume_token", resumeToken)
	}
	resp, err := c.send(ctx, http.MethodGet, "/v1/entities/"+name+":watch", q, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		if err != nil {
			return &UnreachableError{Addr: c.base, Sent: true, Err: err}
		}
		return c.problem(resp, b)
	}
	for dec := json.NewDecoder(resp.Body); ; {
		var line struct {
			State
			Problem *apierr.Problem `json:"problem"`
		}
		switch err := dec.Decode(&line); {
		case err != nil:
			return &UnreachableError{Addr: c.base, Sent: true, Err: err}
		case line.Problem != nil:
			return line.Problem.Error()
		}
		if err := each(line.State); err != nil || line.Deleted {
			return err
		}
	}
}

// do sends a request and decodes its answer into out, unless out is nil. Its error is an
// [*apierr.Error] if samya refused, an [*UnreachableError] if no answer came and a
// [*ForeignAnswerError] if another server answered.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, in, out any) error {
	resp, err := c.send(ctx, method, path, query, in)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return &UnreachableError{Addr: c.base, Sent: true, Err: err}
	}
	if resp.StatusCode/100 != 2 {
		return c.problem(resp, b)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return &ForeignAnswerError{Addr: c.base, Status: resp.StatusCode, Err: err}
	}
	return nil
}

// send sends a request; the caller closes the body of the answer.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, in any) (*http.Response, error) {
	u := c.base + (&url.URL{Path: path, RawQuery: query.Encode()}).String()
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, u, body)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, &UnreachableError{Addr: c.base, Sent: !notSent(err), Err: bare(err)}
	}
	return resp, nil
}

// problem turns an answer that is no success into an error.
func (c *Client) problem(resp *http.Response, body []byte) error {
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || media != apierr.ProblemType {
		return &ForeignAnswerError{Addr: c.base, Status: resp.StatusCode, Err: fmt.Errorf("no problem document but %q", resp.Header.Get("Content-Type"))}
	}
	var p apierr.Problem
	if err := json.Unmarshal(body, &p); err != nil {
		return &ForeignAnswerError{Addr: c.base, Status: resp.StatusCode, Err: err}
	}
	return p.Error()
}

// notSent reports whether err proves that the request never left, or that the server read
// nothing of it.
func notSent(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	if !ok {
		return false
	}
	return op.Op == "dial" || op.Op == "remote error" && slices.ContainsFunc(handshakeAlerts, func(a tls.AlertError) bool {
		// The type of an alert that comes over TCP is not exported, but its text is.
		return op.Err.Error() == a.Error()
	})
}

// handshakeAlerts are the alerts (RFC 8446, section 6) that a server sends before it
// reads a request. The handshake failed, or the server refuses the certificate.
var handshakeAlerts = []tls.AlertError{
	40,  // handshake_failure
	42,  // bad_certificate
	43,  // unsupported_certificate
	44,  // certificate_revoked
	45,  // certificate_expired
	46,  // certificate_unknown
	48,  // unknown_ca
	70,  // protocol_version
	71,  // insufficient_security
	112, // unrecognized_name
	116, // certificate_required
	120, // no_application_protocol
}

// bare strips the method and address that net/http puts before the cause.
func bare(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
