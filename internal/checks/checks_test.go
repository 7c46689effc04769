package checks

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/cutid"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/session"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestDrain: each fault of a drain is told with its field.
func TestDrain(t *testing.T) {
	for what, c := range map[string]struct {
		r     *samyav1.DrainMemberRequest
		field string
	}{
		"good":                  {&samyav1.DrainMemberRequest{Name: "eu"}, ""},
		"with an heir":          {&samyav1.DrainMemberRequest{Name: "eu", Heir: "us", RequestId: "r"}, ""},
		"the end of one":        {&samyav1.DrainMemberRequest{Name: "eu", Cancel: true}, ""},
		"no name":               {&samyav1.DrainMemberRequest{}, "name"},
		"a bad heir":            {&samyav1.DrainMemberRequest{Name: "eu", Heir: "US"}, "heir"},
		"an heir of the end":    {&samyav1.DrainMemberRequest{Name: "eu", Heir: "us", Cancel: true}, "heir"},
		"a bad id of a request": {&samyav1.DrainMemberRequest{Name: "eu", RequestId: "a b"}, "request_id"},
	} {
		err := Drain(c.r)
		if (err == nil) != (c.field == "") || err != nil && !strings.HasPrefix(err.Error(), c.field+":") {
			t.Errorf("%s: %v, want a fault of %q", what, err, c.field)
		}
	}
}

// TestRecover: each fault of a recovery is told with its field.
func TestRecover(t *testing.T) {
	for what, c := range map[string]struct {
		survivors, lost string
		destroyed       bool
		field           string
	}{
		"good":            {"eu us", "as", true, ""},
		"no word":         {"eu us", "as", false, "machines_destroyed"},
		"nobody survives": {"", "as", true, "survivors"},
		"nobody is lost":  {"eu", "", true, "lost"},
		"both":            {"eu us", "as us", true, "lost"},
		"twice":           {"eu us eu", "as", true, "survivors"},
		"a bad name":      {"eu", "AS", true, "lost"},
		"too many":        {"eu", strings.Repeat("x ", mostSites+1), true, "lost"},
	} {
		err := Recover(&samyav1.RecoverClusterRequest{
			Survivors: strings.Fields(c.survivors), Lost: strings.Fields(c.lost), MachinesDestroyed: c.destroyed,
		})
		if (err == nil) != (c.field == "") || err != nil && !strings.HasPrefix(err.Error(), c.field+":") {
			t.Errorf("%s: %v, want a fault of %q", what, err, c.field)
		}
	}
}

// TestRescue: each fault of a rescue is told with its field.
func TestRescue(t *testing.T) {
	for title, test := range map[string]struct {
		change func(r *samyav1.RescueEntityRequest)
		field  string
	}{
		"good":           {func(*samyav1.RescueEntityRequest) {}, ""},
		"below zero":     {func(r *samyav1.RescueEntityRequest) { r.Net, r.Held = -name.MaxTokens, -name.MaxTokens }, ""},
		"no entity":      {func(r *samyav1.RescueEntityRequest) { r.Name = "" }, "name"},
		"no site":        {func(r *samyav1.RescueEntityRequest) { r.Site = "" }, "site"},
		"no generation":  {func(r *samyav1.RescueEntityRequest) { r.Generation = 0 }, "generation"},
		"too much out":   {func(r *samyav1.RescueEntityRequest) { r.Net = name.MaxTokens + 1 }, "net"},
		"too much held":  {func(r *samyav1.RescueEntityRequest) { r.Held = -name.MaxTokens - 1 }, "held"},
		"too many parts": {func(r *samyav1.RescueEntityRequest) { r.Leases = slices.Repeat(r.GetLeases(), 9) }, "leases"},
		"no tokens":      {func(r *samyav1.RescueEntityRequest) { r.Leases[0].Tokens = 0 }, "leases.tokens"},
		"no end":         {func(r *samyav1.RescueEntityRequest) { r.Leases[0].UntilMs = 0 }, "leases.until_ms"},
		"a bad id":       {func(r *samyav1.RescueEntityRequest) { r.RequestId = "a b" }, "request_id"},
	} {
		r := &samyav1.RescueEntityRequest{
			Name: "e", Site: "eu", Generation: 1, Net: 3, Held: 5, Leases: []*samyav1.HeldLeases{{Tokens: 1, UntilMs: 9}}, RequestId: "id",
		}
		test.change(r)
		err := Rescue(r)
		if (err == nil) != (test.field == "") || err != nil && !strings.HasPrefix(err.Error(), test.field+":") {
			t.Errorf("%s: %v, want a fault of %q", title, err, test.field)
		}
	}
}

// TestReconcile: each fault of a reconciliation is told with its field.
func TestReconcile(t *testing.T) {
	cut := cutid.Cut{Entity: "e", Generation: 3, Version: 2, Counted: 9, Leased: 4}
	for name, tc := range map[string]struct {
		change func(r *samyav1.ReconcileEntityRequest)
		at     string
	}{
		"good":                  {func(*samyav1.ReconcileEntityRequest) {}, ""},
		"as many as leases":     {func(r *samyav1.ReconcileEntityRequest) { r.InUse = 4 }, ""},
		"fewer than leases":     {func(r *samyav1.ReconcileEntityRequest) { r.InUse = 3 }, "in_use"},
		"too many":              {func(r *samyav1.ReconcileEntityRequest) { r.InUse = 1 << 53 }, "in_use"},
		"no cut":                {func(r *samyav1.ReconcileEntityRequest) { r.Cut = "" }, "cut"},
		"a cut of another":      {func(r *samyav1.ReconcileEntityRequest) { r.Name = "f" }, "cut"},
		"a bad id":              {func(r *samyav1.ReconcileEntityRequest) { r.RequestId = "a b" }, "request_id"},
		"a cut of another name": {func(r *samyav1.ReconcileEntityRequest) { r.Name = "" }, "name cut"},
	} {
		r := &samyav1.ReconcileEntityRequest{Name: "e", InUse: 5, Cut: cut.String()}
		tc.change(r)
		got, err := Reconcile(r)
		var at []string
		if err != nil {
			for _, v := range apierr.FromName(err).Violations {
				at = append(at, v.Field)
			}
		}
		if strings.Join(at, " ") != tc.at || err == nil && got != cut {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestBoundaries: each fault of an acquire is told with its field, at both boundaries or
// at one of them.
func TestBoundaries(t *testing.T) {
	outside, inside := Boundary{MaxSites: 3}, Boundary{MaxSites: 3, MaxRelays: 255}
	soon, of := timestamppb.New(time.Now().Add(time.Minute)), session.ID{1}.Text()
	for name, tc := range map[string]struct {
		change         func(r *samyav1.AcquireRequest)
		atOut, atSites string // fields at fault
	}{
		"good":                  {func(*samyav1.AcquireRequest) {}, "", ""},
		"no entity":             {func(r *samyav1.AcquireRequest) { r.Entity = "" }, "entity", "entity"},
		"no tokens":             {func(r *samyav1.AcquireRequest) { r.Tokens = 0 }, "tokens", "tokens"},
		"more than all":         {func(r *samyav1.AcquireRequest) { r.MinTokens = 4 }, "min_tokens", "min_tokens"},
		"a long wait":           {func(r *samyav1.AcquireRequest) { r.Wait = durationpb.New(time.Hour) }, "wait", "wait"},
		"a bad site":            {func(r *samyav1.AcquireRequest) { r.Site = "U" }, "site", "site"},
		"a bad id":              {func(r *samyav1.AcquireRequest) { r.RequestId = "a b" }, "request_id", "request_id"},
		"a lease without time":  {func(r *samyav1.AcquireRequest) { r.Lease = new(samyav1.LeaseTerms) }, "lease.ttl", "lease.ttl"},
		"a first attempt":       {func(r *samyav1.AcquireRequest) { r.Attempt = 1 }, "", ""},
		"a second attempt":      {func(r *samyav1.AcquireRequest) { r.Attempt, r.RequestId, r.NotAfter = 2, "x", soon }, "", ""},
		"without an end":        {func(r *samyav1.AcquireRequest) { r.Attempt, r.RequestId = 2, "x" }, "not_after", "not_after"},
		"without an id":         {func(r *samyav1.AcquireRequest) { r.Attempt, r.NotAfter = 2, soon }, "request_id", "request_id"},
		"no time":               {func(r *samyav1.AcquireRequest) { r.NotAfter = &timestamppb.Timestamp{Nanos: -1} }, "not_after", "not_after"},
		"a relay":               {func(r *samyav1.AcquireRequest) { r.Relay, r.RequestId, r.NotAfter = 1, "x", soon }, "relay", ""},
		"the last relay":        {func(r *samyav1.AcquireRequest) { r.Relay, r.RequestId, r.NotAfter = 255, "x", soon }, "relay", ""},
		"a relay too many":      {func(r *samyav1.AcquireRequest) { r.Relay, r.RequestId, r.NotAfter = 256, "x", soon }, "relay", "relay"},
		"a first attempt tried": {func(r *samyav1.AcquireRequest) { r.Tried = []string{"us"} }, "tried", "tried"},
		"tried everywhere": {func(r *samyav1.AcquireRequest) {
			r.Attempt, r.RequestId, r.NotAfter, r.Tried = 2, "x", soon, []string{"as", "eu", "us"}
		}, "", ""},
		"a request of a session": {func(r *samyav1.AcquireRequest) { r.RequestId, r.Acknowledged = of+"1f", 0x1f }, "", ""},
		"more than its sequence": {func(r *samyav1.AcquireRequest) { r.RequestId, r.Acknowledged = of+"1f", 0x20 }, "acknowledged", "acknowledged"},
		"outside of a session":   {func(r *samyav1.AcquireRequest) { r.RequestId, r.Acknowledged = "1f", 1 }, "acknowledged", "acknowledged"},
		"tried elsewhere too": {func(r *samyav1.AcquireRequest) {
			r.Attempt, r.RequestId, r.NotAfter, r.Tried = 2, "x", soon, []string{"as", "eu", "sa", "us"}
		}, "tried", "tried"},
	} {
		r := &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 3}
		tc.change(r)
		for b, want := range map[Boundary]string{outside: tc.atOut, inside: tc.atSites} {
			var fields []string
			if e := apierr.FromName(b.Acquire(r)); e != nil {
				for _, v := range e.Violations {
					fields = append(fields, v.Field)
				}
			}
			if got := strings.Join(fields, " "); got != want {
				t.Errorf("%s at %+v: %q is at fault, want %q", name, b, got, want)
			}
		}
	}
}

// TestPlainRequestsAllocateNothing: a check costs no memory where there is no fault.
func TestPlainRequestsAllocateNothing(t *testing.T) {
	b, r := Boundary{MaxSites: 3}, &samyav1.AcquireRequest{
		Entity: "acme/vm", Tokens: 3, RequestId: session.ID{1}.Text() + "7", Acknowledged: 7, Wait: durationpb.New(0),
	}
	if n := testing.AllocsPerRun(100, func() {
		if err := b.Acquire(r); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
