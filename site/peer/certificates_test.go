package peer_test

import (
	"testing"
	"time"

	"github.com/samya-db/samya/internal/credtest"
	"github.com/samya-db/samya/internal/tlsconf"
	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/peer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// certified gives a site a certificate.
func certified(set *credtest.Set, f tlsconf.Files) func(*peer.Config) {
	return func(c *peer.Config) { c.TLS = set.Open(f) }
}

// TestWhoOpensALink: only the site that the certificate names opens a link, in its own
// name.
func TestWhoOpensALink(t *testing.T) {
	set := credtest.New(t)
	revoked := set.Issue(tlsconf.Site, "as", time.Hour)
	set.Revoke(revoked)
	eu := start(t, newBook(), "eu", certified(set, set.Issue(tlsconf.Site, "eu", time.Hour)))
	us := set.Issue(tlsconf.Site, "us", time.Hour)
	plain := hello(t, members)
	for name, tc := range map[string]struct {
		files tlsconf.Files
		as    string
		code  codes.Code
	}{
		"in its own name":               {us, "us", codes.OK},
		"in another member's name":      {us, "as", codes.PermissionDenied},
		"in the name of who is called":  {us, "eu", codes.FailedPrecondition},
		"an app manager of the name":    {set.Issue(tlsconf.AppManager, "us", time.Hour), "us", codes.PermissionDenied},
		"a caller of the name":          {set.Issue(tlsconf.Client, "us", time.Hour), "us", codes.PermissionDenied},
		"no certificate":                {set.Believing(), "us", codes.PermissionDenied},
		"another CA's certificate":      {set.IssueForeign(tlsconf.Site, "us"), "us", codes.Unavailable},
		"a certificate that is over":    {set.Issue(tlsconf.Site, "late", -time.Minute), "us", codes.Unavailable},
		"a certificate that is revoked": {revoked, "as", codes.Unavailable},
		"no TLS":                        {tlsconf.Files{}, "us", codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			security := insecure.NewCredentials()
			if tc.files.Set() {
				security = set.Open(tc.files).ClientCredentials(tlsconf.Identity{Kind: tlsconf.Site, Name: "eu"})
			}
			stream := dialWith(t, eu.address, security)
			h := &peerv1.Hello{
				OldestVersion: plain.GetOldestVersion(), NewestVersion: plain.GetNewestVersion(), Cluster: plain.GetCluster(), Site: tc.as,
				MembersVersion: plain.GetMembersVersion(), MembersHash: plain.GetMembersHash(),
			}
			if stream == nil {
				if tc.code != codes.Unavailable {
					t.Error("no stream")
				}
				return
			}
			// A stream that was ended already tells why when it is read.
			_ = stream.Send(&peerv1.LinkRequest{Frame: &peerv1.LinkRequest_Hello{Hello: h}})
			if _, err := stream.Recv(); status.Code(err) != tc.code {
				t.Errorf("got %v, want %v", err, tc.code)
			}
		})
	}
}

// dialWith opens a stream; nil if there is no connection.
func dialWith(t *testing.T, address string, security credentials.TransportCredentials) grpc.BidiStreamingClient[peerv1.LinkRequest, peerv1.LinkResponse] {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(security))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	stream, err := peerv1.NewPeerServiceClient(conn).Link(t.Context())
	if err != nil {
		if status.Code(err) != codes.Unavailable {
			t.Fatal(err)
		}
		return nil
	}
	return stream
}

// TestWhoAnswersALink: messages for a site go to the site that the certificate names,
// wherever gossip places it.
func TestWhoAnswersALink(t *testing.T) {
	set := credtest.New(t)
	us := set.Issue(tlsconf.Site, "us", time.Hour)
	for name, tc := range map[string]struct {
		files  tlsconf.Files
		linked bool
	}{
		"the site":                      {set.Issue(tlsconf.Site, "eu", time.Hour), true},
		"another member":                {set.Issue(tlsconf.Site, "as", time.Hour), false},
		"an app manager of the name":    {set.Issue(tlsconf.AppManager, "eu", time.Hour), false},
		"another CA's":                  {set.IssueForeign(tlsconf.Site, "eu"), false},
		"a site whose certificate ends": {set.Issue(tlsconf.Site, "us2", -time.Minute), false},
		"no TLS":                        {tlsconf.Files{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook()
			tried := make(chan struct{}, 1000)
			tweak := func(c *peer.Config) {
				if tc.files.Set() {
					c.TLS = set.Open(tc.files)
				}
			}
			start(t, b, "eu", tweak)
			here := start(t, b, "us", func(c *peer.Config) {
				c.TLS = set.Open(us)
				address := c.Address
				c.Address = func(s core.SiteID) string {
					if s == "eu" {
						tried <- struct{}{}
					}
					return address(s)
				}
			})
			if tc.linked {
				here.links.Send([]message.Envelope{numbered("us", "eu", 1)})
				here.awaitLinked("eu")
				return
			}
			timeout := time.After(greetingTimeout)
			for range 3 {
				select {
				case <-tried:
				case linked := <-here.linked:
					t.Fatalf("linked to %v", linked)
				case <-timeout:
					t.Fatal("it is not tried")
				}
			}
			if linked := here.links.Connected(); len(linked) > 0 {
				t.Errorf("linked to %v", linked)
			}
		})
	}
}
