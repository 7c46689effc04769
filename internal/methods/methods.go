// Package methods is the table of all methods that samya serves: the least role of their
// callers, their bounds, and their routes over HTTP. It is made from the descriptors of
// the services: names, metric labels and streams come from the descriptors themselves,
// roles and routes from the option rule of each method (samya/v1/method.proto). Only
// methods of other services have entries in Go. The package decides nothing and serves
// nothing: package access applies the rules, and a method without a rule is refused to
// everybody.
package methods

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

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

// Rule says which callers may call a method.
type Rule struct {
	// Least is the least role that may call it.
	Least Role
	// Whole: the method tells or changes something of all entities, so callers of some
	// entities may not call it.
	Whole bool
	// Proxies: callers of role Proxy may call it too.
	Proxies bool
	// Any: a request of the method names no entity that could be checked. Without Any, a
	// request that names no entity is for callers of all entities.
	Any bool
	// Sites: only other sites may call it, as their certificates name them.
	Sites bool
	// Change: a call is written to the audit log.
	Change bool
	// Peers: sites may call it at other sites, for the callers of services that they serve
	// beside the public API.
	Peers bool
}

// Route is a route of HTTP.
type Route struct {
	// Name is the operation in the OpenAPI document, and its label in metrics.
	Name string
	// Verb is the method of HTTP.
	Verb string
	// Path is the path as the OpenAPI document has it. {name} stands for an entity
	// or a site.
	Path string
	// Always is as in Method.
	Always bool
}

// Services returns the services of the public API. An app manager registers exactly
// these.
func Services() []*grpc.ServiceDesc {
	return []*grpc.ServiceDesc{&samyav1.TokenService_ServiceDesc, &samyav1.EntityService_ServiceDesc, &samyav1.ClusterService_ServiceDesc}
}

// served returns all services with rules in their proto files: the public API, and what
// sites alone serve.
func served() []*grpc.ServiceDesc { return append(Services(), &samyav1.SiteService_ServiceDesc) }

// methods has all methods by their full names.
var methods = tabulate()

func tabulate() map[string]Method {
	all := make(map[string]Method)
	for full, m := range others {
		m.Name, m.Full = path.Base(full), full
		all[full] = m
	}
	for _, service := range served() {
		// The package of a service registers its descriptor.
		found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service.ServiceName))
		if err != nil {
			panic(err)
		}
		described := found.(protoreflect.ServiceDescriptor).Methods()
		for i := range described.Len() {
			if m, ok := methodOf(described.Get(i)); ok {
				all[m.Full] = m
			}
		}
	}
	return all
}

// methodOf reads the rule of a method of the public API; false if it has none.
func methodOf(d protoreflect.MethodDescriptor) (Method, bool) {
	rule, ok := proto.GetExtension(d.Options(), samyav1.E_Rule).(*samyav1.MethodRule)
	if !ok || rule == nil {
		return Method{}, false
	}
	m := Method{
		Name: string(d.Name()), Full: "/" + string(d.Parent().FullName()) + "/" + string(d.Name()),
		Stream: d.IsStreamingClient() || d.IsStreamingServer(),
		Rule:   Rule{Least: Role(rule.GetLeast()), Whole: rule.GetWhole(), Any: rule.GetAny(), Change: rule.GetChange(), Peers: rule.GetPeers()},
	}
	for _, r := range rule.GetRoutes() {
		name := r.GetName()
		name = cmp.Or(name, m.Name)
		m.Routes = append(m.Routes, Route{Name: name, Verb: r.GetVerb(), Path: r.GetPath()})
	}
	return m, true
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
