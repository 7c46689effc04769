package ratelimit

import (
	"net/http"
	"strconv"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/samya-db/samya/internal/rates"
)

// The fields of draft-ietf-httpapi-ratelimit-headers.
const (
	fieldPolicy = "RateLimit-Policy"
	fieldLimit  = "RateLimit"
	// maxPolicy bounds the name of a policy, in bytes.
	maxPolicy = 128
	// maxInteger is the largest integer of structured fields.
	maxInteger = 999_999_999_999_999
)

// Fields are the header fields RateLimit-Policy and RateLimit of an answer, as lists of
// structured fields (RFC 9651).
type Fields struct{ policy, limit []byte }

// Add adds a limit: so many tokens in each period of the terms, and so many left now.
func (f *Fields) Add(policy string, limit int64, terms *rates.Terms, left int64, now time.Time) {
	if terms.None() {
		return
	}
	limit, left = min(limit, maxInteger), min(left, maxInteger)
	item := func(b []byte) []byte {
		if len(b) > 0 {
			b = append(b, ", "...)
		}
		return quote(b, policy)
	}
	f.policy = strconv.AppendInt(append(item(f.policy), ";q="...), limit, 10)
	period, rest := terms.Around(now)
	f.policy = strconv.AppendInt(append(f.policy, ";w="...), seconds(period), 10)
	f.limit = strconv.AppendInt(append(item(f.limit), ";r="...), left, 10)
	f.limit = strconv.AppendInt(append(f.limit, ";t="...), seconds(rest), 10)
}

// Write writes the fields; nothing without a limit.
func (f *Fields) Write(h http.Header) {
	if len(f.policy) > 0 {
		h[http.CanonicalHeaderKey(fieldPolicy)] = []string{string(f.policy)}
		h[http.CanonicalHeaderKey(fieldLimit)] = []string{string(f.limit)}
	}
}

// values are the fields as Envoy has them.
func (f *Fields) values() []*corev3.HeaderValue {
	if len(f.policy) == 0 {
		return nil
	}
	return []*corev3.HeaderValue{{Key: fieldPolicy, Value: string(f.policy)}, {Key: fieldLimit, Value: string(f.limit)}}
}

// quote appends a string of structured fields. Characters that such a string cannot have
// are question marks.
func quote(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range min(len(s), maxPolicy) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ' || c > '~':
			b = append(b, '?')
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
