package site

import (
	"context"
	"math"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samya-db/samya/internal/node"
	"github.com/samya-db/samya/internal/preset"
	"github.com/samya-db/samya/internal/versions"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/store"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// shell is site us of three, without a core.
func shell() *Site {
	s := &Site{cfg: Config{Config: node.Config{Name: "us"}}, founded: store.Members{Version: 1}}
	s.speaks.Store(new(versions.Speaker))
	s.sites.Store(&memberSet{version: 1, sites: []core.SiteID{"as", "eu", "us"}})
	s.metrics = newMetrics(s)
	return s
}

// TestWhatTheCoreIsAsked: each field of a request reaches the core with its meaning, and
// a wait ends before its caller goes.
func TestWhatTheCoreIsAsked(t *testing.T) {
	s, soon := shell(), time.Now().Add(time.Minute).Truncate(time.Millisecond)
	tries := input.Tries{Attempt: attempt.Of(2, 3), Tried: []core.SiteID{"eu"}, NotAfter: soon.UnixMilli()}
	check := func(what string, got, want any, q asked, wantAsked asked, err error) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(got, want) || q != wantAsked {
			t.Errorf("%s: %v\ngot  %+v of %+v\nwant %+v of %+v", what, err, got, q, want, wantAsked)
		}
	}
	var acquire input.Acquire
	q, err := s.readAcquire(&acquire, &samyav1.AcquireRequest{
		Entity: "acme/vm", Tokens: 9, MinTokens: 4, RequestId: "id", Wait: durationpb.New(3 * time.Second), DryRun: true, Site: "us",
		Lease:   &samyav1.LeaseTerms{Ttl: durationpb.New(time.Minute), Holder: "me"},
		Attempt: 2, Relay: 3, Tried: []string{"us", "eu", "eu"}, NotAfter: timestamppb.New(soon),
	}, time.Second)
	check("acquire", acquire, input.Acquire{
		Entity: "acme/vm", Tokens: 9, Least: 4, Request: attempt.KeyOf("id"), Wait: 950, DryRun: true,
		Lease: &input.LeaseTerms{ID: "id", TTL: 60_000, Holder: "me"}, Tries: tries,
	}, q, asked{"acme/vm", "id", 9}, err)
	q, err = s.readAcquire(&acquire, &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 9, RequestId: "id"}, forEver)
	check("acquire that says no more", acquire, input.Acquire{
		Entity: "acme/vm", Tokens: 9, Request: attempt.KeyOf("id"), Wait: 5000,
	}, q, asked{"acme/vm", "id", 9}, err)
	var release input.Release
	q, err = s.readRelease(&release, &samyav1.ReleaseRequest{
		Entity: "acme/vm", Tokens: 9, RequestId: "id", Lease: "eu/its",
		Attempt: 2, Relay: 3, Tried: []string{"eu"}, NotAfter: timestamppb.New(soon),
	})
	check("release", release, input.Release{
		Entity: "acme/vm", Tokens: 9, Request: attempt.KeyOf("id"), Tries: tries,
		Lease: &input.LeaseRef{Home: "eu", Request: attempt.KeyOf("its")},
	}, q, asked{"acme/vm", "id", 9}, err)
	var all input.AcquireAll
	q, err = s.readAll(&all, &samyav1.BatchRequest{
		Atomic: true, RequestId: "id", Wait: durationpb.New(3 * time.Second),
		Attempt: 2, Relay: 3, Tried: []string{"eu"}, NotAfter: timestamppb.New(soon),
		Operations: []*samyav1.Operation{
			{Operation: &samyav1.Operation_Acquire{Acquire: &samyav1.AcquireRequest{Entity: "a", Tokens: 4}}},
			{Operation: &samyav1.Operation_Acquire{Acquire: &samyav1.AcquireRequest{Entity: "b", Tokens: 5}}},
		},
	}, time.Second)
	check("atomic batch", all, input.AcquireAll{
		Parts: []input.Part{{Entity: "a", Tokens: 4}, {Entity: "b", Tokens: 5}}, Request: attempt.KeyOf("id"), Wait: 950, Tries: tries,
	}, q, asked{"", "id", 9}, err)
	if _, err := s.readAll(&all, &samyav1.BatchRequest{Wait: durationpb.New(-time.Second)}, time.Second); err == nil {
		t.Error("an atomic batch waits for less than no time")
	}
}

// TestWaitsEndInTime: an answer has a tenth of the time left, and at most 50 ms, to reach
// its caller.
func TestWaitsEndInTime(t *testing.T) {
	for _, c := range []struct{ left, wait, want time.Duration }{
		{forEver, 5 * time.Second, 5 * time.Second},
		{10 * time.Second, 5 * time.Second, 5 * time.Second},
		{5 * time.Second, 5 * time.Second, 4950 * time.Millisecond},
		{500 * time.Millisecond, 5 * time.Second, 450 * time.Millisecond},
		{100 * time.Millisecond, 5 * time.Second, 90 * time.Millisecond},
		{0, 5 * time.Second, 0},
		{-time.Second, 5 * time.Second, 0},
		{time.Second, 0, 0},
	} {
		if got := within(c.left, c.wait); got != c.want {
			t.Errorf("%v of %v: %v, want %v", c.wait, c.left, got, c.want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if got := timeLeft(ctx); got != 3*time.Second {
			t.Errorf("%v are left of 3s", got)
		}
		if got := timeLeft(t.Context()); got != math.MaxInt64 {
			t.Errorf("%v are left to a caller without a deadline", got)
		}
	})
}

// TestWhatOperationsAreTold: each field of an answer reaches its caller with its meaning.
func TestWhatOperationsAreTold(t *testing.T) {
	s, q := shell(), asked{entity: "acme/vm", requestID: "id", tokens: 9}
	a := answer.Answer{
		Parked: true, Tokens: 7, Left: 3, RetryAfter: 20, Missing: 2, Lacking: "acme",
		Details: &answer.Details{Lease: answer.Lease{Tokens: 6, Remaining: 1500}},
	}
	in := &input.Acquire{Lease: &input.LeaseTerms{Holder: "me"}}
	want := &samyav1.AcquireResponse{Tokens: 7, RequestId: "id", Site: "us", Left: 3, Lease: &samyav1.Lease{
		Name: "us/id", Entity: "acme/vm", Tokens: 6, Remaining: durationpb.New(1500 * time.Millisecond), Holder: "me",
	}}
	for _, dry := range []bool{false, true} {
		if in.DryRun = dry; dry {
			want.Lease = nil
		}
		got := new(samyav1.AcquireResponse)
		if s.acquired(got, in, &a, &q); !proto.Equal(got, want) {
			t.Errorf("acquired, dry run %v: %v, want %v", dry, got, want)
		}
	}
	released, wantReleased := new(samyav1.ReleaseResponse), &samyav1.ReleaseResponse{Tokens: 7, RequestId: "id", Site: "us", Left: 3, Parked: true}
	if s.released(released, &a, &q); !proto.Equal(released, wantReleased) {
		t.Errorf("released: %v, want %v", released, wantReleased)
	}
}

// TestTries: the forms of attempts that a site takes.
func TestTries(t *testing.T) {
	s, soon := shell(), timestamppb.New(time.Now().Add(time.Minute).Truncate(time.Millisecond))
	at := soon.AsTime().UnixMilli()
	for title, c := range map[string]struct {
		in   *samyav1.ReleaseRequest
		want input.Tries
	}{
		"nothing":                     {&samyav1.ReleaseRequest{RequestId: "x"}, input.Tries{}},
		"a first one":                 {&samyav1.ReleaseRequest{Attempt: 1}, input.Tries{Attempt: attempt.Of(1, 0)}},
		"a first one with an end":     {&samyav1.ReleaseRequest{NotAfter: soon}, input.Tries{Attempt: attempt.Of(0, 0), NotAfter: at}},
		"the last relay":              {&samyav1.ReleaseRequest{RequestId: "x", Relay: 255, NotAfter: soon}, input.Tries{Attempt: attempt.Of(0, 255), NotAfter: at}},
		"the last attempt":            {&samyav1.ReleaseRequest{RequestId: "x", Attempt: attempt.Max, NotAfter: soon}, input.Tries{Attempt: attempt.Of(attempt.Max, 0), NotAfter: at}},
		"nobody knows where":          {&samyav1.ReleaseRequest{RequestId: "x", Attempt: 2, NotAfter: soon}, input.Tries{Attempt: attempt.Of(2, 0), NotAfter: at}},
		"at all sites":                {&samyav1.ReleaseRequest{RequestId: "x", Attempt: 2, NotAfter: soon, Tried: []string{"us", "eu", "as"}}, input.Tries{Attempt: attempt.Of(2, 0), NotAfter: at, Tried: []core.SiteID{"eu", "as"}}},
		"at this site and no other":   {&samyav1.ReleaseRequest{RequestId: "x", Attempt: 2, NotAfter: soon, Tried: []string{"us"}}, input.Tries{Attempt: attempt.Of(2, 0), NotAfter: at, Tried: []core.SiteID{}}},
		"at one site, and then there": {&samyav1.ReleaseRequest{RequestId: "x", Attempt: 3, NotAfter: soon, Tried: []string{"eu", "eu"}}, input.Tries{Attempt: attempt.Of(3, 0), NotAfter: at, Tried: []core.SiteID{"eu"}}},
	} {
		if got, err := s.tries(c.in); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v; want %+v", title, got, err, c.want)
		}
	}
}

// TestHorizon: a request may end as far ahead as it is remembered, less the allowed
// difference of clocks.
func TestHorizon(t *testing.T) {
	for _, c := range []struct{ retention, skew, want time.Duration }{
		{0, 0, 290 * time.Second},
		{0, time.Minute, 4 * time.Minute},
		{20 * time.Second, 0, 15 * time.Second},
		{20 * time.Second, 3 * time.Second, 17 * time.Second},
		{10 * time.Minute, 0, 590 * time.Second},
	} {
		cfg := Config{RequestRetention: c.retention, ClockSkew: c.skew}
		if got := cfg.horizon(); got != c.want {
			t.Errorf("remembered for %v, skew %v: %v, want %v", c.retention, c.skew, got, c.want)
		}
	}
}

// TestTimings: a preset sets the timings of the core without a value of their own. Those
// of wan are the defaults of the core.
func TestTimings(t *testing.T) {
	d := core.Config{}.WithDefaults()
	window, patience := time.Duration(d.Window)*time.Millisecond, time.Duration(d.Patience)*time.Millisecond
	for _, c := range []struct {
		preset                    preset.Name
		collect, takeover         time.Duration
		wantCollect, wantTakeover time.Duration
	}{
		{"", 0, 0, window, patience},
		{"wan", 0, 0, window, patience},
		{"local", 0, 0, window, patience},
		{"lan", 0, 0, 150 * time.Millisecond, 500 * time.Millisecond},
		{"lan", 100 * time.Millisecond, time.Second, 100 * time.Millisecond, time.Second},
	} {
		cfg := Config{Config: node.Config{Preset: c.preset}, CollectTime: c.collect, TakeoverTime: c.takeover}
		if collect, takeover := cfg.timings(); collect != c.wantCollect || takeover != c.wantTakeover {
			t.Errorf("%q, %v, %v: %v and %v", c.preset, c.collect, c.takeover, collect, takeover)
		}
	}
}
