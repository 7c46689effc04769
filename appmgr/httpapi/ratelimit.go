package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/samya-db/samya/appmgr/ratelimit"
	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

var rateLimitHandlers = map[string]handler{
	"ShouldRateLimit": (*api).shouldRateLimit,
	"ForwardAuth":     (*api).forwardAuth,
	"ForwardAuthPost": (*api).forwardAuth,
}

// tellQuota tells a rate quota that was asked for tokens in the header fields. An error is
// the refusal of the acquire.
func (a *api) tellQuota(w http.ResponseWriter, entity string, out *samyav1.AcquireResponse, err error) {
	left := out.GetLeft()
	if err != nil {
		e := apierr.From(err)
		if e.Reason != apierr.OutOfTokens || e.Left == nil {
			return
		}
		left = *e.Left
	}
	var f ratelimit.Fields
	a.Policies.Tell(&f, entity, max(left, 0), time.Now())
	f.Write(w.Header())
}

// shouldRateLimit is the rate limit service over HTTP, as envoyproxy/ratelimit has it: the
// body is the request in the JSON of protobuf.
func (a *api) shouldRateLimit(w http.ResponseWriter, r *http.Request, _ string) error {
	in := &ratelimitv3.RateLimitRequest{}
	if err := a.readBody(w, r, func(body []byte) error {
		if err := protojson.Unmarshal(body, in); err != nil {
			return apierr.New(apierr.MalformedJSON, "%v", err)
		}
		return nil
	}); err != nil {
		return err
	}
	d, err := access.Call(r.Context(), in, a.RateLimits.Decide)
	if err != nil {
		return err
	}
	body, err := protojson.Marshal(d.RateLimitResponse)
	if err != nil {
		return apierr.Wrap(apierr.Internal, err)
	}
	writeAnswer(w, tellDecision(w, d, http.StatusOK, http.StatusTooManyRequests), append(body, '\n'))
	return nil
}

// tellDecision writes the header fields of a decision, and returns its status.
func tellDecision(w http.ResponseWriter, d *ratelimit.Decision, passes, denied int) int {
	f := d.Fields()
	f.Write(w.Header())
	if !d.Denied() {
		return passes
	}
	w.Header().Set("Retry-After", strconv.FormatInt(int64((d.RetryAfter+time.Second-1)/time.Second), 10))
	return denied
}

// maxDomain bounds the name of a domain in a path, in bytes.
const maxDomain = 1024

// domain checks the name of a domain in a path.
func domain(field, s string) error {
	if s == "" || len(s) > maxDomain {
		return apierr.Invalid(field, fmt.Sprintf("%d bytes, at least 1 and at most %d", len(s), maxDomain))
	}
	return nil
}

// forwardAuth answers a web server that asks whether a request may pass: with 204, or with
// 429 or the status that the query has as denied. The server's configuration is the query;
// what the client of the server can choose comes in header fields, and cannot change the
// rules.
func (a *api) forwardAuth(w http.ResponseWriter, r *http.Request, domain string) error {
	q, err := readForward(r)
	if err != nil {
		return err
	}
	q.in.Domain = domain
	if len(q.in.GetDescriptors()) == 0 {
		// The request lacks the header fields that all descriptors need.
		if err := access.Permit(r.Context(), q.in); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	d, err := access.Call(r.Context(), q.in, a.RateLimits.Decide)
	switch reason := apierr.ReasonOf(err); {
	case err == nil:
		w.WriteHeader(tellDecision(w, d, http.StatusNoContent, q.denied))
	case q.failed == 0 || reason == apierr.InvalidField || reason == apierr.PermissionDenied:
		return err
	default:
		w.WriteHeader(q.failed)
	}
	return nil
}

// forward is the query of a forward-auth request.
type forward struct {
	in *ratelimitv3.RateLimitRequest
	// denied is the status of a refusal, and failed that of a request without a decision;
	// 0: the status of the error.
	denied, failed int
}

// readForward reads the query: a parameter descriptor for each descriptor, and maybe hits,
// denied and failed.
func readForward(r *http.Request) (*forward, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, apierr.Invalid("query", "malformed")
	}
	q := &forward{in: &ratelimitv3.RateLimitRequest{}, denied: http.StatusTooManyRequests}
	for key, given := range values {
		if key == "descriptor" {
			continue
		}
		if len(given) > 1 {
			return nil, apierr.Invalid(shorten(key), "given twice")
		}
		n, err := strconv.ParseUint(given[0], 10, 32)
		switch status := int(n); key { //nolint:gosec // parsed as 32 bits
		case "hits":
			if err != nil || n == 0 {
				return nil, apierr.Invalid(key, "must be a whole number, at least 1 and at most 4294967295")
			}
			q.in.HitsAddend = uint32(n) //nolint:gosec // parsed as 32 bits
		case "denied", "failed":
			if err != nil || status != http.StatusNoContent && (status < 400 || status > 599) || status == http.StatusNoContent && key == "denied" {
				return nil, apierr.Invalid(key, "must be a status of an error, from 400 to 599, or for failed 204")
			}
			if key == "denied" {
				q.denied = status
			} else {
				q.failed = status
			}
		default:
			return nil, apierr.Invalid(shorten(key), "unknown parameter")
		}
	}
	if len(values["descriptor"]) == 0 {
		return nil, apierr.Invalid("descriptor", "missing: entries such as remote_address=@X-Real-IP, with commas between them")
	}
	for i, text := range values["descriptor"] {
		d, err := readEntries(fmt.Sprintf("descriptor[%d]", i), text, r.Header)
		if err != nil {
			return nil, err
		}
		if d != nil {
			q.in.Descriptors = append(q.in.Descriptors, d)
		}
	}
	return q, nil
}

// readEntries reads a descriptor, "key=value,key=@Field": a value that begins with '@'
// names the header field of the request that has the value. It returns nil if the request
// has no such field, as Envoy leaves out such a descriptor.
func readEntries(field, text string, h http.Header) (*commonv3.RateLimitDescriptor, error) {
	d := &commonv3.RateLimitDescriptor{}
	for entry := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(entry, "=")
		if key == "" {
			return nil, apierr.Invalid(field, "an entry has no key")
		}
		if from, ok := strings.CutPrefix(value, "@"); ok {
			all := h.Values(from)
			if len(all) == 0 {
				return nil, nil
			}
			value = strings.ToValidUTF8(strings.Join(all, ","), "\uFFFD")
		}
		d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{Key: key, Value: value})
	}
	return d, nil
}
