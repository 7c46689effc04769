package methods

import (
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestEveryMethodHasARule: each method of the public services has a rule, which keeps
// strangers out.
func TestEveryMethodHasARule(t *testing.T) {
	for _, service := range served() {
		found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service.ServiceName))
		if err != nil {
			t.Fatal(err)
		}
		described := found.(protoreflect.ServiceDescriptor).Methods()
		if described.Len() != len(service.Methods)+len(service.Streams) || described.Len() == 0 {
			t.Errorf("%s has %d methods", service.ServiceName, described.Len())
		}
		for i := range described.Len() {
			d := described.Get(i)
			m, ok := Of("/" + service.ServiceName + "/" + string(d.Name()))
			switch {
			case !ok:
				t.Errorf("%s has no rule: nobody may call it", d.FullName())
			case m.Name != string(d.Name()) || m.Stream != (d.IsStreamingServer() || d.IsStreamingClient()):
				t.Errorf("%s is %+v", d.FullName(), m)
			case m.Always || m.Sites || m.Least == Nobody || m.Least > Admin:
				t.Errorf("%s is open to %s", d.FullName(), m.Least)
			case m.Any && m.Whole:
				t.Errorf("%s is for callers of any entities and of all", d.FullName())
			}
		}
	}
}

// TestRolesAreOfTheAPI: the roles are numbered and named as in the API.
func TestRolesAreOfTheAPI(t *testing.T) {
	for r := Viewer; r <= Admin; r++ {
		if want := strings.TrimPrefix(samyav1.Role(r).String(), "ROLE_"); strings.ToUpper(r.String()) != want {
			t.Errorf("%s is %s in the API", r, want)
		}
	}
	// No method of the public API is for proxies.
	if len(samyav1.Role_name)+1 != len(roleNames) {
		t.Errorf("%d roles, %d in the API and that of proxies", len(roleNames), len(samyav1.Role_name))
	}
}

// TestProxies: a proxy may call the methods for proxies and no others. Each role from
// client on may call these too.
func TestProxies(t *testing.T) {
	for _, m := range All() {
		if Proxy.May(m.Rule) != (m.Full == ShouldRateLimit || m.Full == StreamQuotas) || m.Proxies && (Viewer.May(m.Rule) || !Client.May(m.Rule)) {
			t.Errorf("%s: %+v", m.Full, m.Rule)
		}
	}
	for _, c := range []struct{ a, b, want Role }{
		{Proxy, Proxy, Proxy},
		{Proxy, Nobody, Nobody},
		{Proxy, Viewer, Nobody},
		{Proxy, Client, Proxy},
		{Proxy, Admin, Proxy},
		{Viewer, Admin, Viewer},
		{Operator, Client, Client},
	} {
		if got, other := c.a.AtMost(c.b), c.b.AtMost(c.a); got != c.want || other != c.want {
			t.Errorf("%s and %s: %s, %s", c.a, c.b, got, other)
		}
	}
}

// TestRoutesAreApart: no two routes have the same name, or the same verb and path. All
// methods of app managers but streams of operations have a route.
func TestRoutesAreApart(t *testing.T) {
	names, places := map[string]bool{}, map[string]bool{}
	for _, m := range All() {
		if len(m.Routes) == 0 && strings.HasPrefix(m.Full, "/samya.v1.") && m.Name != "Stream" && !ofSites(m) {
			t.Errorf("%s cannot be called over HTTP", m.Full)
		}
		for _, r := range m.Routes {
			place := r.Verb + " " + r.Path
			if names[r.Name] || places[place] || r.Name == "" {
				t.Errorf("%+v is there twice, or has no name", r)
			}
			names[r.Name], places[place] = true, true
			// Servers that ask a forward-auth endpoint choose the verb.
			if m.Full != ShouldRateLimit && (r.Verb == http.MethodGet) != (m.Least == Viewer || m.Least == Nobody) {
				t.Errorf("%s: %s is for a %s", r.Name, r.Verb, m.Least)
			}
		}
	}
	if len(names) < 25 {
		t.Errorf("%d routes", len(names))
	}
}

// ofSites reports whether sites alone serve a method.
func ofSites(m Method) bool {
	return strings.HasPrefix(m.Full, "/"+samyav1.SiteService_ServiceDesc.ServiceName+"/")
}
