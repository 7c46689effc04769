package failuretest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// verb is the kind of a request.
type verb uint8

const (
	acquireVerb verb = iota
	releaseVerb
	commitVerb
)

// retried is a request through all its attempts. Its caller owns the id.
type retried struct {
	id     string
	verb   verb
	tokens int64
	// least is the min_tokens of an acquire, 0 for none.
	least int64
	wait  time.Duration
	// ttl is the time to live of the lease that an acquire asks for, 0 for none.
	ttl time.Duration
	// lease is the lease of a release or a commit.
	lease    string
	began    time.Time
	notAfter time.Time
	attempt  uint32
	// tried are the sites that attempts without an answer may have reached, as their
	// errors told; anywhere is set once an error named no site.
	tried    []string
	anywhere bool
	// answer is the recorded answer of the latest attempt, once there is any.
	answer reply
	// by is the time of the answer.
	by time.Time
}

// reply is the outcome of an attempt.
type reply struct {
	tokens int64
	site   string
	// lease is the name of the lease granted.
	lease  string
	parked bool
	// err is nil if the request was done.
	err *apierr.Error
}

// reason is the reason of a refusal, empty if the request was done.
func (o reply) reason() apierr.Reason {
	if o.err == nil {
		return ""
	}
	return o.err.Reason
}

// settles reports whether the request's caller may rely on an answer, whatever became of
// earlier attempts: the answer is recorded, or its lease has ended for good.
func (r *retried) settles(o reply) bool {
	switch o.reason() {
	case "":
		return true
	case apierr.OutOfTokens:
		return r.verb == acquireVerb
	case apierr.LeaseNotFound:
		return r.lease != ""
	}
	return false
}

// again readies the next attempt after a reply that does not settle the request.
func (r *retried) again(o reply) {
	switch e := o.err; {
	case e.Reason.NothingDone():
	case len(e.Tried) == 0:
		r.anywhere = true
	default:
		for _, s := range e.Tried {
			if !slices.Contains(r.tried, s) {
				r.tried = append(r.tried, s)
			}
		}
	}
	r.attempt++
}

// reached returns the sites that earlier attempts may have reached; nil on a first
// attempt, or if they may have reached any site.
func (r *retried) reached() []string {
	if r.anywhere || r.attempt <= 1 {
		return nil
	}
	return r.tried
}

func (r *retried) acquire() *samyav1.AcquireRequest {
	m := &samyav1.AcquireRequest{
		Entity: entity, Tokens: r.tokens, RequestId: r.id, Wait: durationpb.New(r.wait), MinTokens: r.least,
		Attempt: r.attempt, Tried: r.reached(), NotAfter: timestamppb.New(r.notAfter),
	}
	if r.ttl > 0 {
		m.Lease = &samyav1.LeaseTerms{Ttl: durationpb.New(r.ttl), Holder: "retries"}
	}
	return m
}

func (r *retried) release() *samyav1.ReleaseRequest {
	return &samyav1.ReleaseRequest{
		Entity: entity, Tokens: r.tokens, RequestId: r.id, Lease: r.lease,
		Attempt: r.attempt, Tried: r.reached(), NotAfter: timestamppb.New(r.notAfter),
	}
}

// call makes an attempt over gRPC.
func (r *retried) call(ctx context.Context, c samyav1.TokenServiceClient, opts ...grpc.CallOption) reply {
	var o reply
	var err error
	switch r.verb {
	case acquireVerb:
		var m *samyav1.AcquireResponse
		m, err = c.Acquire(ctx, r.acquire(), opts...)
		o = reply{tokens: m.GetTokens(), site: m.GetSite(), lease: m.GetLease().GetName()}
	case releaseVerb:
		var m *samyav1.ReleaseResponse
		m, err = c.Release(ctx, r.release(), opts...)
		o = reply{tokens: m.GetTokens(), site: m.GetSite(), parked: m.GetParked()}
	case commitVerb:
		var m *samyav1.CommitLeaseResponse
		m, err = c.CommitLease(ctx, &samyav1.CommitLeaseRequest{Lease: r.lease, Tokens: r.tokens, RequestId: r.id}, opts...)
		o = reply{tokens: m.GetTokens(), site: m.GetSite()}
	}
	if err != nil {
		return reply{err: apierr.FromGRPC(err)}
	}
	return o
}

// post makes an attempt over HTTP.
func (r *retried) post(ctx context.Context, c *http.Client, addr string) reply {
	body := map[string]any{"tokens": r.tokens, "request_id": r.id}
	path := "/v1/entities/" + entity + ":acquire"
	switch r.verb {
	case releaseVerb:
		path = "/v1/entities/" + entity + ":release"
		if r.lease != "" {
			body["lease"] = r.lease
		}
	case commitVerb:
		path = "/v1/leases:commit"
		body["lease"] = r.lease
	case acquireVerb:
		body["wait"] = r.wait.String()
		if r.least > 0 {
			body["min_tokens"] = r.least
		}
		if r.ttl > 0 {
			body["lease"] = map[string]any{"ttl": r.ttl.String(), "holder": "retries"}
		}
	}
	if r.verb != commitVerb {
		body["attempt"], body["not_after"] = r.attempt, r.notAfter.UTC().Format(time.RFC3339Nano)
		if tried := r.reached(); len(tried) > 0 {
			body["tried"] = tried
		}
	}
	status, text, err := postJSON(ctx, c, "http://"+addr+path, body)
	if err != nil {
		return reply{err: apierr.Wrap(apierr.OutcomeUnknown, err)}
	}
	if status != http.StatusOK {
		var p apierr.Problem
		if err := json.Unmarshal(text, &p); err != nil {
			return reply{err: apierr.Wrap(apierr.OutcomeUnknown, err)}
		}
		return reply{err: p.Error()}
	}
	var m struct {
		Tokens int64           `json:"tokens"`
		Site   string          `json:"site"`
		Parked bool            `json:"parked"`
		Lease  json.RawMessage `json:"lease"`
	}
	var lease struct {
		Name string `json:"name"`
	}
	err = json.Unmarshal(text, &m)
	if err == nil && r.ttl > 0 {
		err = json.Unmarshal(m.Lease, &lease)
	}
	if err != nil {
		return reply{err: apierr.Wrap(apierr.Internal, fmt.Errorf("read %s: %w", text, err))}
	}
	return reply{tokens: m.Tokens, site: m.Site, parked: m.Parked, lease: lease.Name}
}

func postJSON(ctx context.Context, c *http.Client, url string, body any) (status int, text []byte, err error) {
	b, err := json.Marshal(body)
	if err != nil {
		return 0, nil, fmt.Errorf("encode the request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(b))
	if err != nil {
		return 0, nil, fmt.Errorf("make the request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("send the request: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // all of it was read, or it is broken
	text, err = io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, fmt.Errorf("read the answer: %w", err)
	}
	return resp.StatusCode, text, nil
}

// door is an app manager as clients reach it. The connections outlive the app manager's
// restarts.
type door struct {
	process *proc.Process
	tokens  samyav1.TokenServiceClient
	http    *http.Client
}

func newDoor(t *testing.T, p *proc.Process) *door {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+p.GRPC,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1, MaxDelay: 20 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}))
	if err != nil {
		t.Fatal(err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 100
	t.Cleanup(func() {
		_ = conn.Close() // nothing is under way on it any more
		transport.CloseIdleConnections()
	})
	return &door{process: p, tokens: samyav1.NewTokenServiceClient(conn), http: &http.Client{Transport: transport}}
}

// send makes an attempt at the app manager.
func (d *door) send(ctx context.Context, r *retried, overHTTP bool) reply {
	if overHTTP {
		return r.post(ctx, d.http, d.process.HTTP)
	}
	return r.call(ctx, d.tokens)
}

// renew renews a lease for as long as before.
func (d *door) renew(ctx context.Context, lease string, overHTTP bool) error {
	if !overHTTP {
		_, err := d.tokens.RenewLease(ctx, &samyav1.RenewLeaseRequest{Lease: lease})
		return err
	}
	status, text, err := postJSON(ctx, d.http, "http://"+d.process.HTTP+"/v1/leases:renew", map[string]any{"lease": lease})
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d: %s", status, text)
	}
	return err
}
