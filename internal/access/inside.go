package access

import (
	"context"

	"google.golang.org/grpc"

	"github.com/samya-db/samya/internal/methods"
	"github.com/samya-db/samya/internal/tlsconf"
)

// Inside returns the guard as interceptors of calls from within the process of a site: from
// a service that the site serves beside its own. As an app manager, the service has checked
// its own callers against the rules, and tells them by [Relay]. Changes are written to the audit log.
func (g *Guard) Inside(site string) (grpc.UnaryServerInterceptor, grpc.StreamServerInterceptor) {
	id := tlsconf.Identity{Kind: tlsconf.Site, Name: site}
	shows := credentials{inside: &principal{Name: id.String(), Role: methods.Admin, Kind: tlsconf.AppManager}}
	unary := func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		return g.unary(ctx, req, info, handler, shows)
	}
	stream := func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		return g.stream(srv, stream, info, handler, shows)
	}
	return unary, stream
}
