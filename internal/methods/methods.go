// Package methods is the table of all methods that samya serves: the least role of their
// callers, their bounds, and their routes over HTTP. It is made from the descriptors of
// the services, so names, metric labels and streams need no entry. The package decides
// nothing and serves nothing: package access applies the rules, and a method without an
// entry is refused to everybody.
package methods

import (
	"maps"
	"path"
	"slices"
	"strings"

	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Rule says which callers may call a method.
type Rule struct {
	// Least is the least role that may call it.
	Least Role
	// Whole: the method tells or changes something of all entities, so callers of some
	// entities may not call it.
	Whole bool
	// Any: a request of the method names no entity that could be checked. Without Any, a
	// request that names no entity is for callers of all entities.
	Any bool
	// Sites: only other sites may call it, as their certificates name them.
	Sites bool
	// Change: a call is written to the audit log.
	Change bool
}

// Method is a method of gRPC, or a resource that is served over HTTP only.
type Method struct {
	// Name is the method's name without its service, and its label in metrics.
	Name string
	// Full is the full name of the method.
	Full string
	// Stream: a call lasts as long as its caller wants, so it has a bound of its own.
	Stream bool
	// Always: the method is served at any time. A full server is not a dead server, and
	// describing a server costs little.
	Always bool
	Rule
	// Routes are the routes of HTTP that make the call.
	Routes []Route
}

// Route is a route of HTTP.
type Route struct {
	// Name is the operation in the OpenAPI document, and its label in metrics.
	Name string
	// Verb is the method of HTTP.
	Verb string
	// Path is the path as the OpenAPI document has it. {name} stands for an entity.
	Path string
	// Always is as in Method.
	Always bool
}

// row is the entry of a method in the table.
type row struct {
	Rule
	always bool
	routes []Route
}

// methods has all methods by their full names.
var methods = tabulate()

func tabulate() map[string]Method {
	all := make(map[string]Method)
	add := func(full string, stream bool) {
		r, ok := rows[full]
		if !ok {
			return
		}
		m := Method{Name: path.Base(full), Full: full, Stream: stream, Always: r.always, Rule: r.Rule, Routes: r.routes}
		for i := range m.Routes {
			if m.Routes[i].Name == "" {
				m.Routes[i].Name = m.Name
			}
		}
		all[full] = m
	}
	for _, d := range append(Services(), &healthv1.Health_ServiceDesc,
		&reflectionv1.ServerReflection_ServiceDesc, &reflectionv1alpha.ServerReflection_ServiceDesc) {
		for _, m := range d.Methods {
			add("/"+d.ServiceName+"/"+m.MethodName, false)
		}
		for _, m := range d.Streams {
			add("/"+d.ServiceName+"/"+m.StreamName, true)
		}
	}
	add(peerLink, true)
	add(Metrics, false)
	add(Alive, false)
	return all
}

// Services returns the services of the public API. An app manager registers exactly
// these.
func Services() []*grpc.ServiceDesc {
	return []*grpc.ServiceDesc{&samyav1.TokenService_ServiceDesc, &samyav1.EntityService_ServiceDesc, &samyav1.ClusterService_ServiceDesc}
}

// Of returns the method of a full name; false if the table has no such method.
func Of(full string) (Method, bool) {
	m, ok := methods[full]
	return m, ok
}

// All returns all methods, sorted by their full names.
func All() []Method {
	return slices.SortedFunc(maps.Values(methods), func(a, b Method) int { return strings.Compare(a.Full, b.Full) })
}
