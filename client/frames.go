package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/samya-db/samya/internal/frames"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// errUnaddressed: the gRPC connection does not tell the address of its server.
var errUnaddressed = errors.New("the server has no address of its own")

// streams returns the connection of a target's stream: over frames where this package
// knows how gRPC reaches the target, and else over gRPC.
func (c *Config) streams(t Target, conn connection) grpc.ClientConnInterface {
	host, direct := plainAddress(t.Address)
	if !direct || len(c.DialOptions) > 0 || proxied(host) {
		return conn
	}
	o := frames.Options{
		Dial:     func(ctx context.Context) (net.Conn, string, error) { return dialSame(ctx, conn) },
		Security: c.Security, Authority: host, MaxMessage: maxAnswer,
	}
	if c.Token != nil {
		o.Caller = credentials.PerRPCCredentials(bearer{c.Token, c.Security != nil})
	}
	return frames.New(conn, o)
}

// dialSame connects to the server that a connection is connected to, and returns the name
// by which that server answers. Behind an address several servers may stand.
func dialSame(ctx context.Context, conn grpc.ClientConnInterface) (net.Conn, string, error) {
	var at peer.Peer
	resp := &samyav1.ListSitesResponse{}
	if err := conn.Invoke(ctx, samyav1.ClusterService_ListSites_FullMethodName, &samyav1.ListSitesRequest{}, resp, grpc.Peer(&at)); err != nil {
		return nil, "", fmt.Errorf("asking the server for its name: %w", err)
	}
	if at.Addr == nil || at.Addr.Network() != "tcp" {
		return nil, "", errUnaddressed
	}
	c, err := new(net.Dialer).DialContext(ctx, "tcp", at.Addr.String())
	return c, resp.GetAnsweredBy(), err
}

// plainAddress returns the host and port of a target's address. It reports false for an
// address of another kind.
func plainAddress(address string) (string, bool) {
	for _, scheme := range []string{"dns:///", "passthrough:///"} {
		address = strings.TrimPrefix(address, scheme)
	}
	if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" || strings.Contains(host, "/") {
		return "", false
	}
	return address, true
}

// proxied reports whether gRPC reaches an address by a proxy.
func proxied(address string) bool {
	via, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "https", Host: address}})
	return via != nil || err != nil
}
