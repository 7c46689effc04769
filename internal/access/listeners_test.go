package access_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"google.golang.org/grpc"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/credtest"
	"github.com/samya-db/samya/internal/methods"
	"github.com/samya-db/samya/internal/tlsconf"
)

// demand is the demand of a method on its callers: the least role, and whether a caller
// must be for all entities.
type demand struct {
	role  methods.Role
	whole bool
	// sites: only other sites may call it. itself: only other nodes of the site.
	sites, itself bool
	// atSites: no app manager serves it. peers: a site may call it at another site.
	atSites, peers bool
	// proxies: proxies may call it. Its entities are not below acme, but below ratelimit/acme.
	proxies bool
	// request is a request about acme, as JSON.
	request string
}

// demands has every method of every service.
var demands = map[string]demand{
	"/samya.v1.TokenService/Acquire":     {role: methods.Client, peers: true, request: `{"entity":"acme/vm","tokens":1,"wait":"0s"}`},
	"/samya.v1.TokenService/Release":     {role: methods.Client, peers: true, request: `{"entity":"acme/vm","tokens":1}`},
	"/samya.v1.TokenService/RenewLease":  {role: methods.Client, peers: true, request: `{"lease":"us/none"}`},
	"/samya.v1.TokenService/CommitLease": {role: methods.Client, request: `{"lease":"us/none"}`},
	"/samya.v1.TokenService/Batch":       {role: methods.Client, peers: true, request: `{"operations":[{"acquire":{"entity":"acme/vm","tokens":1}}]}`},
	"/samya.v1.TokenService/Stream":      {role: methods.Client, peers: true, request: `{}`},
	"/samya.v1.TokenService/ListLeases":  {role: methods.Viewer, request: `{"entity":"acme/vm"}`},

	"/samya.v1.EntityService/GetEntity":    {role: methods.Viewer, peers: true, request: `{"name":"acme/vm","consistency":"CONSISTENCY_LOCAL"}`},
	"/samya.v1.EntityService/ListEntities": {role: methods.Viewer, request: `{"prefix":"acme/"}`},
	"/samya.v1.EntityService/WatchEntity":  {role: methods.Viewer, request: `{"name":"acme/vm"}`},
	"/samya.v1.EntityService/CreateEntity": {role: methods.Operator, request: `{"name":"acme/vm","limit":"1"}`},
	"/samya.v1.EntityService/UpdateEntity": {role: methods.Operator, request: `{"name":"acme/vm","limit":"1000"}`},
	"/samya.v1.EntityService/DeleteEntity": {role: methods.Operator, request: `{"name":"acme/none"}`},
	"/samya.v1.EntityService/MoveEntity":   {role: methods.Operator, whole: true, request: `{"name":"acme/none","parent":"acme/vm"}`},

	"/samya.v1.EntityService/GetEntityActivity": {role: methods.Viewer, request: `{"name":"acme/vm"}`},
	"/samya.v1.EntityService/GetEntityHistory":  {role: methods.Viewer, request: `{"name":"acme/vm"}`},

	"/samya.v1.EntityService/CutEntity":       {role: methods.Viewer, request: `{"name":"acme/vm"}`},
	"/samya.v1.EntityService/ReconcileEntity": {role: methods.Admin, request: `{"name":"acme/vm","in_use":"1","cut":"cut1-x"}`},
	"/samya.v1.EntityService/ResetEntity":     {role: methods.Operator, request: `{"name":"acme/vm"}`},
	"/samya.v1.EntityService/RescueEntity":    {role: methods.Admin, request: `{"name":"acme/vm","site":"None/such","generation":"1"}`},

	"/samya.v1.ClusterService/ListSites":      {role: methods.Viewer, peers: true, request: `{}`},
	"/samya.v1.ClusterService/GetMode":        {role: methods.Viewer, request: `{}`},
	"/samya.v1.ClusterService/GetVersion":     {role: methods.Viewer, request: `{}`},
	"/samya.v1.ClusterService/RaiseVersion":   {role: methods.Admin, whole: true, request: `{"version":65535}`},
	"/samya.v1.ClusterService/GetForecast":    {role: methods.Viewer, request: `{}`},
	"/samya.v1.ClusterService/InspectSites":   {role: methods.Viewer, whole: true, request: `{}`},
	"/samya.v1.ClusterService/SurveySites":    {role: methods.Viewer, whole: true, request: `{}`},
	"/samya.v1.ClusterService/SetMode":        {role: methods.Admin, whole: true, request: `{"protocol":"none-such"}`},
	"/samya.v1.ClusterService/ListMembers":    {role: methods.Viewer, peers: true, request: `{}`},
	"/samya.v1.ClusterService/WatchMembers":   {role: methods.Viewer, peers: true, request: `{}`},
	"/samya.v1.ClusterService/AddMember":      {role: methods.Admin, whole: true, request: `{"name":"None/such"}`},
	"/samya.v1.ClusterService/DrainMember":    {role: methods.Admin, whole: true, request: `{"name":"None/such"}`},
	"/samya.v1.ClusterService/RemoveMember":   {role: methods.Admin, whole: true, request: `{"name":"None/such"}`},
	"/samya.v1.ClusterService/RecoverCluster": {role: methods.Admin, whole: true, request: `{"survivors":["None/such"]}`},
	"/samya.v1.ClusterService/RescueMember":   {role: methods.Admin, whole: true, request: `{"name":"None/such"}`},
	"/samya.v1.ClusterService/SetForecast":    {role: methods.Admin, whole: true, request: `{"model":"none-such"}`},

	"/samya.v1.SiteService/Backup":     {role: methods.Admin, whole: true, atSites: true, request: `{"site":"none-such"}`},
	"/samya.v1.SiteService/ListNodes":  {role: methods.Viewer, whole: true, atSites: true, request: `{"site":"none-such"}`},
	"/samya.v1.SiteService/HandOver":   {role: methods.Admin, whole: true, atSites: true, request: `{"site":"none-such"}`},
	"/samya.v1.SiteService/ForgetNode": {role: methods.Admin, whole: true, atSites: true, request: `{"site":"none-such"}`},

	methods.ShouldRateLimit: {
		role: methods.Client, proxies: true, request: `{"domain":"acme","descriptors":[{"entries":[{"key":"none"}]}]}`,
	},

	methods.StreamQuotas: {role: methods.Client, proxies: true, request: `{"domain":"acme"}`},

	"/samya.peer.v1.PeerService/Link":     {sites: true, request: `{"hello":{"cluster":"test","site":"eu"}}`},
	"/samya.peer.v1.PeerService/CopyBase": {itself: true, request: `{"cluster":"test","site":"none-such"}`},

	"/grpc.health.v1.Health/Check": {request: `{}`},
	"/grpc.health.v1.Health/Watch": {request: `{}`},
	"/grpc.health.v1.Health/List":  {request: `{}`},

	"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      {role: methods.Viewer, request: `{"listServices":""}`},
	"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": {role: methods.Viewer, request: `{"listServices":""}`},
}

// route is a route of HTTP: the method of gRPC with the same demand, and a request about
// acme.
type route struct{ like, path, body string }

// routes has every operation of the description of the API.
var routes = map[string]route{
	"ListEntities": {"/samya.v1.EntityService/ListEntities", "/v1/entities?prefix=acme/", ""},
	"CreateEntity": {"/samya.v1.EntityService/CreateEntity", "/v1/entities", `{"name":"acme/vm","limit":1}`},
	"GetEntity":    {"/samya.v1.EntityService/GetEntity", "/v1/entities/acme/vm?consistency=local", ""},
	"UpdateEntity": {"/samya.v1.EntityService/UpdateEntity", "/v1/entities/acme/vm", `{"limit":1000}`},
	"DeleteEntity": {"/samya.v1.EntityService/DeleteEntity", "/v1/entities/acme/none", ""},
	"MoveEntity":   {"/samya.v1.EntityService/MoveEntity", "/v1/entities/acme/none:move", `{"parent":"acme/vm"}`},
	"WatchEntity":  {"/samya.v1.EntityService/WatchEntity", "/v1/entities/acme/vm:watch", ""},
	"CutEntity":    {"/samya.v1.EntityService/CutEntity", "/v1/entities/acme/vm:cut", ""},

	"GetEntityActivity": {"/samya.v1.EntityService/GetEntityActivity", "/v1/entities/acme/vm:activity", ""},
	"GetEntityHistory":  {"/samya.v1.EntityService/GetEntityHistory", "/v1/entities/acme/vm:history", ""},

	"ReconcileEntity": {"/samya.v1.EntityService/ReconcileEntity", "/v1/entities/acme/vm:reconcile", `{"in_use":1,"cut":"cut1-x"}`},
	"ResetEntity":     {"/samya.v1.EntityService/ResetEntity", "/v1/entities/acme/vm:reset", "{}"},
	"RescueEntity":    {"/samya.v1.EntityService/RescueEntity", "/v1/entities/acme/vm:rescue", `{"site":"None/such","generation":1,"net":0,"held":0}`},

	"Acquire":         {"/samya.v1.TokenService/Acquire", "/v1/entities/acme/vm:acquire", `{"tokens":1,"wait":"0s"}`},
	"Release":         {"/samya.v1.TokenService/Release", "/v1/entities/acme/vm:release", `{"tokens":1}`},
	"Batch":           {"/samya.v1.TokenService/Batch", "/v1/batch", `{"operations":[{"acquire":{"entity":"acme/vm","tokens":1}}]}`},
	"ListLeases":      {"/samya.v1.TokenService/ListLeases", "/v1/leases?entity=acme/vm", ""},
	"RenewLease":      {"/samya.v1.TokenService/RenewLease", "/v1/leases:renew", `{"lease":"us/none"}`},
	"CommitLease":     {"/samya.v1.TokenService/CommitLease", "/v1/leases:commit", `{"lease":"us/none"}`},
	"VoidLease":       {"/samya.v1.TokenService/Release", "/v1/leases:void", `{"lease":"us/none","entity":"acme/vm"}`},
	"GetCaller":       {"/samya.v1.ClusterService/ListSites", "/v1/caller", ""},
	"ListSites":       {"/samya.v1.ClusterService/ListSites", "/v1/sites", ""},
	"SurveySites":     {"/samya.v1.ClusterService/SurveySites", "/v1/sites:survey", ""},
	"Diagnose":        {"/samya.v1.ClusterService/SurveySites", "/v1/doctor", ""},
	"InspectSites":    {"/samya.v1.ClusterService/InspectSites", "/v1/sites:inspect", ""},
	"GetMode":         {"/samya.v1.ClusterService/GetMode", "/v1/mode", ""},
	"SetMode":         {"/samya.v1.ClusterService/SetMode", "/v1/mode", `{"protocol":"none-such"}`},
	"ListMembers":     {"/samya.v1.ClusterService/ListMembers", "/v1/members", ""},
	"WatchMembers":    {"/samya.v1.ClusterService/WatchMembers", "/v1/members:watch", ""},
	"AddMember":       {"/samya.v1.ClusterService/AddMember", "/v1/members", `{"name":"None/such"}`},
	"DrainMember":     {"/samya.v1.ClusterService/DrainMember", "/v1/members/none-such:drain", `{"heir":"None/such"}`},
	"RemoveMember":    {"/samya.v1.ClusterService/RemoveMember", "/v1/members/none-such?request_id=%20", ""},
	"RescueMember":    {"/samya.v1.ClusterService/RescueMember", "/v1/members/none-such:rescue", `{"request_id":" "}`},
	"RecoverCluster":  {"/samya.v1.ClusterService/RecoverCluster", "/v1/members:recover", `{"survivors":["None/such"]}`},
	"GetVersion":      {"/samya.v1.ClusterService/GetVersion", "/v1/version", ""},
	"RaiseVersion":    {"/samya.v1.ClusterService/RaiseVersion", "/v1/version", `{"version":65535}`},
	"GetForecast":     {"/samya.v1.ClusterService/GetForecast", "/v1/forecast", ""},
	"SetForecast":     {"/samya.v1.ClusterService/SetForecast", "/v1/forecast", `{"model":"none-such"}`},
	"ShouldRateLimit": {methods.ShouldRateLimit, "/json", `{"domain":"acme","descriptors":[{"entries":[{"key":"none"}]}]}`},
	"ForwardAuth":     {methods.ShouldRateLimit, "/v1/forward-auth/acme?descriptor=none", ""},
	"ForwardAuthPost": {methods.ShouldRateLimit, "/v1/forward-auth/acme?descriptor=none", "{}"},

	"metrics":     {"/samya.v1.ClusterService/InspectSites", "/metrics", ""},
	"livez":       {"/grpc.health.v1.Health/Check", "/livez", ""},
	"readyz":      {"/grpc.health.v1.Health/Check", "/readyz", ""},
	"OpenAPIYAML": {"/grpc.health.v1.Health/Check", "/v1/openapi.yaml", ""},
	"OpenAPIJSON": {"/grpc.health.v1.Health/Check", "/v1/openapi.json", ""},
}

// who is a caller that knocks, with the facts known about it.
type who struct {
	shows shown
	// handshake: no listener shakes hands.
	handshake bool
	// known: as a caller of a role, for all entities unless it is restricted, and
	// covering acme or not.
	known, restricted, foreign bool
	role                       methods.Role
	kind                       tlsconf.Kind
}

// verdict is the expected answer to a request of w, at a site or at an app manager.
func (w *who) verdict(d demand, atSite bool) apierr.Reason {
	switch {
	case d.role == methods.Nobody && !d.sites && !d.itself:
		return ""
	case !w.known && w.kind == "":
		return apierr.Unauthenticated
	case (d.sites || d.peers) && w.kind == tlsconf.Site && atSite:
		return ""
	case d.sites, d.itself, w.kind == tlsconf.Site:
		return apierr.PermissionDenied
	case w.kind == tlsconf.AppManager && atSite:
		return ""
	case w.role == methods.Proxy:
		if d.proxies {
			return ""
		}
		return apierr.PermissionDenied
	case d.proxies && w.restricted:
		return apierr.PermissionDenied
	case w.kind == tlsconf.AppManager, w.role < d.role, d.whole && w.restricted, w.foreign && strings.Contains(d.request, "acme"):
		return apierr.PermissionDenied
	}
	return ""
}

// everybody returns all callers that knock, by name.
func everybody(c *cluster) map[string]*who {
	set := c.set
	all := map[string]*who{}
	believing := set.Believing()
	bearer := func(name, authorization string) *who {
		all[name] = &who{shows: shown{files: believing, authorization: authorization}}
		return all[name]
	}
	for name, w := range map[string]who{
		"viewer": {role: methods.Viewer}, "client": {role: methods.Client, restricted: true}, "other": {role: methods.Client, restricted: true, foreign: true},
		"operator": {role: methods.Operator}, "tenant": {role: methods.Operator, restricted: true}, "admin": {role: methods.Admin},
		"proxy": {role: methods.Proxy, restricted: true},
	} {
		w.known = true
		byToken, byCert := w, w
		byToken.shows = c.caller(name)
		byCert.shows = shown{files: set.Issue(tlsconf.Client, name, time.Hour)}
		all["token of "+name], all["certificate of "+name] = &byToken, &byCert
	}
	bearer("nobody", "")
	bearer("a wrong token", "Bearer the-token-of-nobody")
	bearer("an empty token", "Bearer ")
	bearer("another scheme", "Basic "+credtest.Token("admin"))
	bearer("a token without a scheme", credtest.Token("admin"))
	bearer("a huge token", "Bearer "+strings.Repeat("a", 8193))
	*bearer("a JWT", "Bearer "+set.JWT(nil)) = who{shows: shown{files: believing, authorization: "Bearer " + set.JWT(nil)}, known: true, role: methods.Client, restricted: true}
	*bearer("a JWT of too high a role", "") = who{
		shows: shown{files: believing, authorization: "Bearer " + set.JWT(map[string]any{"samya_role": "admin", "samya_prefixes": nil})}, known: true, role: methods.Operator,
	}
	hour := time.Hour
	for name, claims := range map[string]map[string]any{
		"a JWT that is over":          {"exp": time.Now().Add(-hour).Unix()},
		"a JWT without an end":        {"exp": nil},
		"a JWT that is not yet good":  {"nbf": time.Now().Add(hour).Unix()},
		"a JWT for others":            {"aud": "others"},
		"a JWT of another issuer":     {"iss": "https://elsewhere.example"},
		"a JWT of nobody":             {"sub": nil},
		"a JWT without a role":        {"samya_role": nil},
		"a client's JWT of no prefix": {"samya_prefixes": nil},
	} {
		bearer(name, "Bearer "+set.JWT(claims))
	}
	stranger := credtest.New(c.t)
	bearer("a JWT of another key", "Bearer "+stranger.JWT(nil))
	published, err := os.ReadFile(set.KeyFile())
	if err != nil {
		c.t.Fatal(err)
	}
	bearer("a JWT signed with what is public", "Bearer "+set.Sign(jose.JSONWebKey{Key: published, Algorithm: "HS256"}, nil))
	parts := strings.Split(set.JWT(nil), ".")
	bearer("a JWT that nobody has signed", "Bearer eyJhbGciOiJub25lIn0."+parts[1]+".")

	certificate := func(name string, f tlsconf.Files, w who) {
		w.shows.files = f
		all[name] = &w
	}
	certificate("a certificate of nobody known", set.Issue(tlsconf.Client, "stranger", hour), who{})
	certificate("another CA's certificate", set.IssueForeign(tlsconf.Client, "admin"), who{handshake: true})
	certificate("a certificate that is over", set.Issue(tlsconf.Client, "late", -time.Minute), who{handshake: true})
	revoked := set.Issue(tlsconf.Client, "gone", hour)
	set.Revoke(revoked)
	for _, s := range c.stores {
		s.Look()
	}
	certificate("a certificate that is revoked", revoked, who{handshake: true})
	certificate("the certificate of another site", set.Issue(tlsconf.Site, "eu", hour), who{kind: tlsconf.Site})
	certificate("the certificate of an app manager", set.Issue(tlsconf.AppManager, "am2", hour), who{kind: tlsconf.AppManager})
	mixed := set.Issue(tlsconf.Client, "mixed", hour)
	all["a wrong token with a certificate"] = &who{shows: shown{files: mixed, authorization: "Bearer x"}}
	all["no TLS"] = &who{shows: shown{plain: true, authorization: "Bearer " + credtest.Token("admin")}, handshake: true}
	return all
}

// TestListeners knocks at every listener with every credential, and asks for everything
// there is.
func TestListeners(t *testing.T) {
	c := start(t, access.Limits{})
	asked := 0
	for name, w := range everybody(c) {
		t.Run(name, func(t *testing.T) {
			for _, at := range []struct {
				name, addr string
				site       bool
			}{{"site", c.site.GRPCAddr(), true}, {"app manager", c.manager.GRPCAddr(), false}} {
				conn := c.dial(at.addr, w.shows)
				for method, d := range demands {
					if (d.sites || d.itself || d.atSites) && !at.site {
						continue
					}
					asked++
					got, err := reason(call(t, conn, method, d.request))
					judge(t, at.name+" "+method, w, got, err, w.verdict(d, at.site))
				}
			}
			web := c.web(w.shows)
			for _, o := range operations(t) {
				r, ok := routes[o.id]
				if !ok {
					t.Fatalf("the API has %s, which has no row here", o.id)
				}
				d := demands[r.like]
				d.request = r.path + r.body
				asked++
				got, _, err := c.request(web, w.shows, c.manager.HTTPAddr(), o.method, r.path, r.body)
				judge(t, "HTTP "+o.method+" "+r.path, w, got, err, w.verdict(d, false))
			}
			for path, like := range map[string]string{
				"/livez": "/grpc.health.v1.Health/Check", "/readyz": "/grpc.health.v1.Health/Check", "/metrics": "/samya.v1.ClusterService/InspectSites",
			} {
				asked++
				got, _, err := c.request(web, w.shows, c.site.HTTPAddr(), "GET", path, "")
				judge(t, "site "+path, w, got, err, w.verdict(demands[like], true))
			}
		})
	}
	t.Logf("%d requests", asked)
}

// judge compares an answer with the expected answer.
func judge(t *testing.T, what string, w *who, got apierr.Reason, err error, want apierr.Reason) {
	t.Helper()
	switch {
	case w.handshake && err == nil:
		t.Errorf("%s: a handshake", what)
	case !w.handshake && err != nil:
		t.Errorf("%s: %v", what, err)
	case !w.handshake && got != want:
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// describe returns the description of a method.
func describe(tb testing.TB, method string) protoreflect.MethodDescriptor {
	tb.Helper()
	service, name, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		tb.Fatal(err)
	}
	m := d.(protoreflect.ServiceDescriptor).Methods().ByName(protoreflect.Name(name))
	if m == nil {
		tb.Fatalf("no method %s", method)
	}
	return m
}

// call makes a call with a request in JSON, and returns the error of its first answer.
func call(tb testing.TB, conn *grpc.ClientConn, method, request string) error {
	tb.Helper()
	m := describe(tb, method)
	in, out := dynamicpb.NewMessage(m.Input()), dynamicpb.NewMessage(m.Output())
	if err := protojson.Unmarshal([]byte(request), in); err != nil {
		tb.Fatalf("%s: %v", method, err)
	}
	ctx, cancel := context.WithTimeout(tb.Context(), 20*time.Second)
	defer cancel()
	if !m.IsStreamingClient() && !m.IsStreamingServer() {
		return conn.Invoke(ctx, method, in, out)
	}
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	if err != nil {
		return err
	}
	// A stream that was ended already tells why when it is read.
	_ = stream.SendMsg(in)
	_ = stream.CloseSend()
	return stream.RecvMsg(out)
}

// operation is an operation of the API.
type operation struct{ id, method string }

// operations reads all operations from the description of the API.
func operations(tb testing.TB) []operation {
	tb.Helper()
	b, err := os.ReadFile("../../appmgr/httpapi/openapi.json")
	if err != nil {
		tb.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			ID string `json:"operationId"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		tb.Fatal(err)
	}
	var all []operation
	for _, verbs := range doc.Paths {
		for method, o := range verbs {
			all = append(all, operation{o.ID, strings.ToUpper(method)})
		}
	}
	if len(all) < 20 {
		tb.Fatalf("the API has %d operations", len(all))
	}
	return all
}

// TestEveryMethodHasARule: every served method has a rule and a row in the table of this
// test, and no other method has.
func TestEveryMethodHasARule(t *testing.T) {
	c := start(t, access.Limits{})
	served := map[string]bool{methods.Metrics: true, methods.Alive: true, methods.Caller: true, methods.Diagnose: true}
	for _, addr := range []string{c.site.GRPCAddr(), c.manager.GRPCAddr()} {
		stream, err := reflectionv1.NewServerReflectionClient(c.dial(addr, c.caller("admin"))).ServerReflectionInfo(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}); err != nil {
			t.Fatal(err)
		}
		answer, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range answer.GetListServicesResponse().GetService() {
			d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(s.GetName()))
			if err != nil {
				t.Fatal(err)
			}
			described := d.(protoreflect.ServiceDescriptor).Methods()
			for i := range described.Len() {
				served[fmt.Sprintf("/%s/%s", s.GetName(), described.Get(i).Name())] = true
			}
		}
	}
	for method := range served {
		if _, ok := methods.Of(method); !ok {
			t.Errorf("%s has no rule: nobody may call it", method)
		}
		if _, ok := demands[method]; !ok && !strings.HasPrefix(method, "/http/") {
			t.Errorf("%s has no row in this test", method)
		}
	}
	for _, m := range methods.All() {
		if !served[m.Full] {
			t.Errorf("%s has a rule, and nobody serves it", m.Full)
		}
	}
	if len(served) < 25 {
		t.Errorf("%d methods", len(served))
	}
}
