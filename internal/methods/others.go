package methods

import (
	"net/http"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
)

// The names of resources that are served over HTTP only.
const (
	// Metrics is /metrics.
	Metrics = "/http/metrics"
	// Caller is /v1/caller.
	Caller = "/http/caller"
	// Diagnose is /v1/doctor.
	Diagnose = "/http/doctor"
	// Alive is /livez, /readyz and the description of the API.
	Alive = "/http/alive"
)

// ShouldRateLimit is the method of Envoy's rate limit service, whose package sites need
// not import.
const ShouldRateLimit = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"

// StreamQuotas is the method of Envoy's rate limit quota service.
const StreamQuotas = "/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas"

// others has the methods that do not belong to the public API.
var others = map[string]Method{
	// The methods of the service between sites. The app manager does not import its
	// package.
	"/samya.peer.v1.PeerService/Link":     {Stream: true, Rule: Rule{Sites: true}},
	"/samya.peer.v1.PeerService/CopyBase": {Rule: Rule{Sites: true}},

	// Load balancers call these without credentials.
	healthv1.Health_Check_FullMethodName: {Always: true},
	healthv1.Health_Watch_FullMethodName: {Always: true, Stream: true},
	healthv1.Health_List_FullMethodName:  {Always: true},

	reflectionv1.ServerReflection_ServerReflectionInfo_FullMethodName:      {Always: true, Stream: true, Rule: Rule{Least: Viewer, Any: true}},
	reflectionv1alpha.ServerReflection_ServerReflectionInfo_FullMethodName: {Always: true, Stream: true, Rule: Rule{Least: Viewer, Any: true}},

	ShouldRateLimit: {
		Rule: Rule{Least: Client, Proxies: true},
		Routes: []Route{
			{Name: "ShouldRateLimit", Verb: http.MethodPost, Path: "/json"},
			{Name: "ForwardAuth", Verb: http.MethodGet, Path: "/v1/forward-auth/{name}"},
			{Name: "ForwardAuthPost", Verb: http.MethodPost, Path: "/v1/forward-auth/{name}"},
		},
	},

	StreamQuotas: {Stream: true, Rule: Rule{Least: Client, Proxies: true}},

	Metrics: {
		Rule:   Rule{Least: Viewer, Whole: true},
		Routes: []Route{{Name: "metrics", Verb: http.MethodGet, Path: "/metrics", Always: true}},
	},
	Caller: {
		Rule:   Rule{Least: Viewer, Any: true},
		Routes: []Route{{Name: "GetCaller", Verb: http.MethodGet, Path: "/v1/caller"}},
	},
	Diagnose: {
		Rule:   Rule{Least: Viewer, Whole: true},
		Routes: []Route{{Name: "Diagnose", Verb: http.MethodGet, Path: "/v1/doctor"}},
	},
	Alive: {Routes: []Route{
		{Name: "livez", Verb: http.MethodGet, Path: "/livez", Always: true},
		{Name: "readyz", Verb: http.MethodGet, Path: "/readyz", Always: true},
		{Name: "OpenAPIYAML", Verb: http.MethodGet, Path: "/v1/openapi.yaml"},
		{Name: "OpenAPIJSON", Verb: http.MethodGet, Path: "/v1/openapi.json"},
	}},
}
