package methods

import (
	"net/http"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// The names of resources that are served over HTTP only.
const (
	// Metrics is /metrics.
	Metrics = "/http/metrics"
	// Alive is /livez, /readyz and the description of the API.
	Alive = "/http/alive"
)

// peerLink is the only method of the service between sites. The app manager does not
// import its package.
const peerLink = "/samya.peer.v1.PeerService/Link"

// Kinds of rules.
var (
	reads   = Rule{Least: Viewer}
	moves   = Rule{Least: Client}
	changes = Rule{Least: Operator, Change: true}
	rules   = Rule{Least: Admin, Whole: true, Change: true}
)

func without(r Rule) Rule {
	r.Any = true
	return r
}

func get(path string) []Route    { return []Route{{Verb: http.MethodGet, Path: path}} }
func post(path string) []Route   { return []Route{{Verb: http.MethodPost, Path: path}} }
func put(path string) []Route    { return []Route{{Verb: http.MethodPut, Path: path}} }
func patch(path string) []Route  { return []Route{{Verb: http.MethodPatch, Path: path}} }
func remove(path string) []Route { return []Route{{Verb: http.MethodDelete, Path: path}} }

// rows has the entry of every method that any listener serves.
var rows = map[string]row{
	samyav1.TokenService_Acquire_FullMethodName: {Rule: moves, routes: post("/v1/entities/{name}:acquire")},
	samyav1.TokenService_Release_FullMethodName: {Rule: moves, routes: append(
		post("/v1/entities/{name}:release"), Route{Name: "VoidLease", Verb: http.MethodPost, Path: "/v1/leases:void"})},
	// A lease's name does not tell its entity: its site checks the entity.
	samyav1.TokenService_RenewLease_FullMethodName:  {Rule: without(moves), routes: post("/v1/leases:renew")},
	samyav1.TokenService_CommitLease_FullMethodName: {Rule: without(moves), routes: post("/v1/leases:commit")},
	samyav1.TokenService_Batch_FullMethodName:       {Rule: moves, routes: post("/v1/batch")},
	samyav1.TokenService_Stream_FullMethodName:      {Rule: moves},
	samyav1.TokenService_ListLeases_FullMethodName:  {Rule: reads, routes: get("/v1/leases")},

	samyav1.EntityService_GetEntity_FullMethodName:    {Rule: reads, routes: get("/v1/entities/{name}")},
	samyav1.EntityService_ListEntities_FullMethodName: {Rule: reads, routes: get("/v1/entities")},
	samyav1.EntityService_WatchEntity_FullMethodName:  {Rule: reads, routes: get("/v1/entities/{name}:watch")},
	samyav1.EntityService_CreateEntity_FullMethodName: {Rule: changes, routes: post("/v1/entities")},
	samyav1.EntityService_UpdateEntity_FullMethodName: {Rule: changes, routes: patch("/v1/entities/{name}")},
	samyav1.EntityService_DeleteEntity_FullMethodName: {Rule: changes, routes: remove("/v1/entities/{name}")},
	// A move takes an entity out of a tree that the entity's name does not tell.
	samyav1.EntityService_MoveEntity_FullMethodName: {
		Rule: Rule{Least: Operator, Whole: true, Change: true}, routes: post("/v1/entities/{name}:move"),
	},

	samyav1.ClusterService_ListSites_FullMethodName:   {Rule: without(reads), routes: get("/v1/sites")},
	samyav1.ClusterService_GetMode_FullMethodName:     {Rule: without(reads), routes: get("/v1/mode")},
	samyav1.ClusterService_GetForecast_FullMethodName: {Rule: without(reads), routes: get("/v1/forecast")},
	// Its answer names the most used entities.
	samyav1.ClusterService_InspectSites_FullMethodName: {Rule: Rule{Least: Viewer, Whole: true}, routes: get("/v1/sites:inspect")},
	samyav1.ClusterService_SetMode_FullMethodName:      {Rule: rules, routes: put("/v1/mode")},
	samyav1.ClusterService_SetForecast_FullMethodName:  {Rule: rules, routes: put("/v1/forecast")},

	peerLink: {Rule: Rule{Sites: true}},

	// Load balancers call these without credentials.
	healthv1.Health_Check_FullMethodName: {always: true},
	healthv1.Health_Watch_FullMethodName: {always: true},
	healthv1.Health_List_FullMethodName:  {always: true},

	reflectionv1.ServerReflection_ServerReflectionInfo_FullMethodName:      {Rule: without(reads), always: true},
	reflectionv1alpha.ServerReflection_ServerReflectionInfo_FullMethodName: {Rule: without(reads), always: true},

	Metrics: {Rule: Rule{Least: Viewer, Whole: true}, routes: []Route{{Name: "metrics", Verb: http.MethodGet, Path: "/metrics", Always: true}}},
	Alive: {routes: []Route{
		{Name: "livez", Verb: http.MethodGet, Path: "/livez", Always: true},
		{Name: "readyz", Verb: http.MethodGet, Path: "/readyz", Always: true},
		{Name: "OpenAPIYAML", Verb: http.MethodGet, Path: "/v1/openapi.yaml"},
		{Name: "OpenAPIJSON", Verb: http.MethodGet, Path: "/v1/openapi.json"},
	}},
}
