package httpapi_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/inspection"
)

// TestEveryFieldIsSent: a call sends each of its arguments, and leaves out empty
// arguments.
func TestEveryFieldIsSent(t *testing.T) {
	ctx := t.Context()
	notAfter := time.Date(2026, 3, 4, 5, 6, 7, 8_000_000, time.UTC)
	for _, test := range []struct {
		call func(*httpapi.Client) error
		want string
	}{
		{call(func(c *httpapi.Client) (any, error) { return c.CreateEntity(ctx, "acme/vm", 5, "") }), `POST /v1/entities {"name":"acme/vm","limit":5}`},
		{call(func(c *httpapi.Client) (any, error) {
			return c.Create(ctx, httpapi.Creation{Name: "acme/vm", Limit: 5, Parent: "acme", RequestID: "id"})
		}), `POST /v1/entities {"name":"acme/vm","limit":5,"parent":"acme","request_id":"id"}`},
		{call(func(c *httpapi.Client) (any, error) {
			return c.Create(ctx, httpapi.Creation{Name: "llm", Limit: 5, Per: "1d", Kind: "window", TimeZone: "Asia/Tokyo"})
		}), `POST /v1/entities {"name":"llm","limit":5,"per":"1d","kind":"window","time_zone":"Asia/Tokyo"}`},
		{call(func(c *httpapi.Client) (any, error) { return c.MoveEntity(ctx, "acme/vm", "") }), `POST /v1/entities/acme/vm:move {"parent":""}`},
		{call(func(c *httpapi.Client) (any, error) { return nil, c.DeleteSubtree(ctx, "acme") }), `DELETE /v1/entities/acme?subtree=true`},
		{call(func(c *httpapi.Client) (any, error) { return nil, c.DeleteEntity(ctx, "acme") }), `DELETE /v1/entities/acme`},
		{call(func(c *httpapi.Client) (any, error) {
			return c.UpdateEntity(ctx, "acme", httpapi.Change{Limit: 0, ExpectedVersion: 7, RequestID: "id", WaitApplied: true})
		}), `PATCH /v1/entities/acme {"limit":0,"expected_version":7,"request_id":"id","wait_applied":true}`},
		{call(func(c *httpapi.Client) (any, error) { return c.CutEntity(ctx, "acme") }), `GET /v1/entities/acme:cut`},
		{call(func(c *httpapi.Client) (any, error) {
			return c.ReconcileEntity(ctx, "acme", httpapi.Truth{InUse: 0, Cut: "cut1-x", RequestID: "id"})
		}), `POST /v1/entities/acme:reconcile {"in_use":0,"cut":"cut1-x","request_id":"id"}`},
		{call(func(c *httpapi.Client) (any, error) { return c.ReadEntity(ctx, "acme", "exact", 1500*time.Millisecond) }), `GET /v1/entities/acme?consistency=exact&max_age=1.5s`},
		{call(func(c *httpapi.Client) (any, error) { return c.ListEntities(ctx, "", 0, "") }), `GET /v1/entities`},
		{call(func(c *httpapi.Client) (any, error) { return c.ListEntities(ctx, "a/", 3, "t") }), `GET /v1/entities?page_size=3&page_token=t&prefix=a%2F`},
		{call(func(c *httpapi.Client) (any, error) {
			return c.Acquire(ctx, "acme", httpapi.Request{
				Tokens: 3, MinTokens: 2, DryRun: true, Lease: httpapi.LeaseTerms{TTL: "30s", Holder: "h", Share: true}, Attempt: 4,
				Tried: []string{"us"}, NotAfter: &notAfter, RequestID: "id", Wait: "2s", Site: "eu",
			})
		}), `POST /v1/entities/acme:acquire {"tokens":3,"min_tokens":2,"dry_run":true,"lease":{"ttl":"30s","holder":"h","share":true},"attempt":4,"tried":["us"],"not_after":"2026-03-04T05:06:07.008Z","request_id":"id","wait":"2s","site":"eu"}`},
		{call(func(c *httpapi.Client) (any, error) {
			return c.Release(ctx, "acme", httpapi.Request{Lease: "us/id"})
		}), `POST /v1/entities/acme:release {"lease":"us/id"}`},
		{call(func(c *httpapi.Client) (any, error) { return c.ListLeases(ctx, "", "", 0, "") }), `GET /v1/leases`},
		{call(func(c *httpapi.Client) (any, error) { return c.ListLeases(ctx, "h", "acme", 9, "t") }), `GET /v1/leases?entity=acme&holder=h&page_size=9&page_token=t`},
		{call(func(c *httpapi.Client) (any, error) { return c.RenewLease(ctx, "us/id", "") }), `POST /v1/leases:renew {"lease":"us/id"}`},
		{call(func(c *httpapi.Client) (any, error) { return c.RenewLease(ctx, "us/id", "9s") }), `POST /v1/leases:renew {"lease":"us/id","ttl":"9s"}`},
		{call(func(c *httpapi.Client) (any, error) { return c.CommitLease(ctx, "us/id", 0, "") }), `POST /v1/leases:commit {"lease":"us/id"}`},
		{call(func(c *httpapi.Client) (any, error) { return c.CommitLease(ctx, "us/id", 2, "id") }), `POST /v1/leases:commit {"lease":"us/id","request_id":"id","tokens":2}`},
		{call(func(c *httpapi.Client) (any, error) { return c.SetMode(ctx, "star", 0, "") }), `PUT /v1/mode {"protocol":"star"}`},
		{call(func(c *httpapi.Client) (any, error) { return c.SetMode(ctx, "star", 6, "id") }), `PUT /v1/mode {"expected_version":6,"protocol":"star","request_id":"id"}`},
		{call(func(c *httpapi.Client) (any, error) { return c.ListMembers(ctx) }), `GET /v1/members`},
		{call(func(c *httpapi.Client) (any, error) { return c.AddMember(ctx, "west", "") }), `POST /v1/members {"name":"west"}`},
		{call(func(c *httpapi.Client) (any, error) { return c.AddMember(ctx, "west", "id") }), `POST /v1/members {"name":"west","request_id":"id"}`},
		{call(func(c *httpapi.Client) (any, error) { return c.DrainMember(ctx, "eu", "", "") }), `POST /v1/members/eu:drain {}`},
		{call(func(c *httpapi.Client) (any, error) { return c.DrainMember(ctx, "eu", "us", "id") }), `POST /v1/members/eu:drain {"heir":"us","request_id":"id"}`},
		{call(func(c *httpapi.Client) (any, error) { return c.KeepMember(ctx, "eu", "id") }), `POST /v1/members/eu:drain {"cancel":true,"request_id":"id"}`},
		{call(func(c *httpapi.Client) (any, error) { return c.RemoveMember(ctx, "eu", false, "") }), `DELETE /v1/members/eu`},
		{call(func(c *httpapi.Client) (any, error) { return c.RemoveMember(ctx, "eu", true, "id") }), `DELETE /v1/members/eu?lost=true&request_id=id`},
		{call(func(c *httpapi.Client) (any, error) { return c.RecoverCluster(ctx, []string{"us"}, []string{"eu"}) }), `POST /v1/members:recover {"lost":["eu"],"machines_destroyed":true,"survivors":["us"]}`},
		{call(func(c *httpapi.Client) (any, error) { return c.MembersAt(ctx, "eu") }), `GET /v1/members?site=eu`},
		{call(func(c *httpapi.Client) (any, error) { return c.RescueMember(ctx, "eu", "") }), `POST /v1/members/eu:rescue {}`},
		{call(func(c *httpapi.Client) (any, error) { return c.RescueMember(ctx, "eu", "id") }), `POST /v1/members/eu:rescue {"request_id":"id"}`},
		{call(func(c *httpapi.Client) (any, error) {
			return c.RescueEntity(ctx, "acme", httpapi.Estate{Site: "eu", Generation: 3, Net: -1, Held: 2, Leases: []httpapi.HeldLeases{{Tokens: 4, UntilMS: 5}}, RequestID: "id"})
		}), `POST /v1/entities/acme:rescue {"site":"eu","generation":3,"net":-1,"held":2,"leases":[{"tokens":4,"until_ms":5}],"request_id":"id"}`},
		{call(func(c *httpapi.Client) (any, error) { return c.RaiseVersion(ctx, 2, "") }), `PUT /v1/version {"version":2}`},
		{call(func(c *httpapi.Client) (any, error) { return c.RaiseVersion(ctx, 2, "id") }), `PUT /v1/version {"request_id":"id","version":2}`},
		{call(func(c *httpapi.Client) (any, error) { return c.SetForecast(ctx, "none") }), `PUT /v1/forecast {"model":"none"}`},
		{call(func(c *httpapi.Client) (any, error) { return c.InspectSites(ctx, "us") }), `GET /v1/sites:inspect?site=us`},
		{call(func(c *httpapi.Client) (any, error) {
			return nil, c.WatchEntity(ctx, "acme", "t", func(httpapi.State) error { return context.Canceled })
		}), `GET /v1/entities/acme:watch?resume_token=t`},
		{call(func(c *httpapi.Client) (any, error) {
			return nil, c.WatchEntity(ctx, "acme", "", func(httpapi.State) error { return context.Canceled })
		}), `GET /v1/entities/acme:watch`},
	} {
		got := ""
		_ = test.call(newClient(t, "am:1", roundTripper(func(r *http.Request) (*http.Response, error) {
			got = r.Method + " " + r.URL.RequestURI()
			media := ""
			if r.Body != nil {
				b, err := io.ReadAll(r.Body)
				if err != nil {
					return nil, err
				}
				got, media = got+" "+string(b), "application/json"
			}
			if is := r.Header.Get("Content-Type"); is != media {
				t.Errorf("%s: media type %q, want %q", got, is, media)
			}
			return answer(http.StatusOK, "application/json", "{}").RoundTrip(r)
		})))
		if d := cmp.Diff(test.want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

// call makes a call of a client, and drops its result.
func call(do func(*httpapi.Client) (any, error)) func(*httpapi.Client) error {
	return func(c *httpapi.Client) error {
		_, err := do(c)
		return err
	}
}

// TestFieldsOfTheAPI: a type has the fields of its schema in the API's document, under
// the same names. Types read by both sides of a test agree even on a wrong name.
func TestFieldsOfTheAPI(t *testing.T) {
	b, err := os.ReadFile("../../appmgr/httpapi/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]any `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(b, &document); err != nil {
		t.Fatal(err)
	}
	for schema, test := range map[string]struct {
		value any
		// also lists fields of the schema that the type lacks.
		also []string
	}{
		"Acquire":       {value: httpapi.Request{}},
		"ChangedEntity": {value: httpapi.Changed{}},
		"Committed":     {value: httpapi.Committed{}},
		"Entity":        {value: httpapi.Entity{}},
		"EntityPage":    {value: httpapi.Page{}},
		"EntityStatus":  {value: httpapi.Status{}},
		"DryRun":        {value: httpapi.DryRun{}},
		"DryRunShare":   {value: httpapi.DryRunShare{}},
		"Lease":         {value: httpapi.Lease{}},
		"LeasePage":     {value: httpapi.LeasePage{}},
		"LeaseTerms":    {value: httpapi.LeaseTerms{}},
		"Member":        {value: httpapi.Member{}},
		"Members":       {value: httpapi.Members{}},
		"Drain":         {value: httpapi.Drain{}},
		"ChangedMember": {value: httpapi.ChangedMember{}},
		"Mode":          {value: httpapi.Mode{}},
		"ModeStatus":    {value: httpapi.ModeStatus{}},
		// The caller knows the entity; the field tells something only in a batch.
		"Moved":            {value: httpapi.Moved{}, also: []string{"entity"}},
		"ForecastStatus":   {value: httpapi.ForecastStatus{}},
		"InspectionStatus": {value: inspection.Status{}},
		"Problem":          {value: apierr.Problem{}},
		"Share":            {value: httpapi.Share{}},
		"Site":             {value: httpapi.Site{}},
		"SiteForecast":     {value: httpapi.SiteForecast{}},
		"SiteMode":         {value: httpapi.SiteMode{}},
		"SiteVersion":      {value: httpapi.SiteVersion{}},
		"Version":          {value: httpapi.Version{}},
		"VersionStatus":    {value: httpapi.VersionStatus{}},
		"Sites":            {value: httpapi.Sites{}},
		"Cut":              {value: httpapi.Cut{}},
		"ReconcileEntity":  {value: httpapi.Truth{}},
		"ReconciledEntity": {value: httpapi.Reconciled{}},
		"UpdateEntity":     {value: httpapi.Change{}},
		// A problem ends a watch as its error.
		"WatchLine": {value: httpapi.State{}, also: []string{"problem"}},
	} {
		var want []string
		for name := range document.Components.Schemas[schema].Properties {
			want = append(want, name)
		}
		got := append(fields(reflect.TypeOf(test.value)), test.also...)
		slices.Sort(want)
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-in the document +here):\n%s", schema, d)
		}
	}
}

// fields returns the names that the fields of a structure have in JSON.
func fields(of reflect.Type) []string {
	var names []string
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			names = append(names, fields(f.Type)...)
			continue
		}
		names = append(names, name)
	}
	return names
}
