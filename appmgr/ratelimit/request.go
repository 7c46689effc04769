package ratelimit

import (
	"fmt"
	"strings"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/ratelimit/rules"
)

// The bounds of a request. The bound on messages bounds its texts.
const (
	maxDescriptors = 64
	maxEntries     = 32
)

// asked is a request.
type asked struct {
	domain      string
	descriptors []rules.Descriptor
	// hits are the hits of each descriptor; 0 asks whether any are left.
	hits []int64
}

// read checks a request.
func read(in *ratelimitv3.RateLimitRequest) (*asked, error) {
	n := len(in.GetDescriptors())
	switch {
	case in.GetDomain() == "":
		return nil, apierr.Invalid("domain", "missing")
	case n == 0:
		return nil, apierr.Invalid("descriptors", "missing")
	case n > maxDescriptors:
		return nil, apierr.Invalid("descriptors", fmt.Sprintf("%d, at most %d", n, maxDescriptors))
	}
	a := &asked{domain: in.GetDomain(), descriptors: make([]rules.Descriptor, n), hits: make([]int64, n)}
	for i, d := range in.GetDescriptors() {
		a.hits[i] = int64(max(1, in.GetHitsAddend()))
		if fault := a.readDescriptor(i, d); fault != nil {
			return nil, fault.Within(fmt.Sprintf("descriptors[%d].", i))
		}
	}
	return a, nil
}

// readDescriptor checks the descriptor at i.
func (a *asked) readDescriptor(i int, in *commonv3.RateLimitDescriptor) *apierr.Error {
	d := &a.descriptors[i]
	switch n := len(in.GetEntries()); {
	case n == 0:
		return apierr.Invalid("entries", "missing")
	case n > maxEntries:
		return apierr.Invalid("entries", fmt.Sprintf("%d, at most %d", n, maxEntries))
	}
	d.Entries = make([]rules.Entry, len(in.GetEntries()))
	for i, e := range in.GetEntries() {
		if e.GetKey() == "" {
			return apierr.Invalid(fmt.Sprintf("entries[%d].key", i), "missing")
		}
		d.Entries[i] = rules.Entry{Key: e.GetKey(), Value: e.GetValue()}
	}
	if o := in.GetLimit(); o != nil {
		d.Override = &rules.Override{Limit: int64(o.GetRequestsPerUnit()), Unit: rules.Unit(strings.ToLower(o.GetUnit().String()))}
		if terms := d.Override.Unit.Terms(); terms.None() {
			return apierr.Invalid("limit.unit", "must be SECOND, MINUTE, HOUR, DAY, MONTH or YEAR")
		}
	}
	if own := in.GetHitsAddend(); own != nil {
		if own.GetValue() > name.MaxTokens {
			return apierr.Invalid("hits_addend", fmt.Sprintf("%d, at most %d", own.GetValue(), int64(name.MaxTokens)))
		}
		a.hits[i] = int64(own.GetValue()) //nolint:gosec // checked above
	}
	return nil
}
