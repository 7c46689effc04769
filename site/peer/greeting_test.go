package peer_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/peer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

func dial(t *testing.T, address string) grpc.BidiStreamingClient[peerv1.LinkRequest, peerv1.LinkResponse] {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), greetingTimeout)
	t.Cleanup(cancel)
	stream, err := peerv1.NewPeerServiceClient(conn).Link(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// hello is the introduction of site us to a listener of the test.
func hello(t *testing.T, members []core.SiteID) *peerv1.Hello {
	t.Helper()
	b := newBook()
	heard := make(chan *peerv1.Hello, 10)
	listen(t, b, "eu", func(stream grpc.BidiStreamingServer[peerv1.LinkRequest, peerv1.LinkResponse]) error {
		first, err := stream.Recv()
		if err == nil {
			heard <- first.GetHello()
		}
		return err
	})
	start(t, b, "us", func(c *peer.Config) { c.Members = members })
	select {
	case h := <-heard:
		return h
	case <-time.After(greetingTimeout):
		t.Fatal("no greeting")
		return nil
	}
}

// fake is a peer that does as the test says.
type fake struct {
	peerv1.UnimplementedPeerServiceServer
	link func(grpc.BidiStreamingServer[peerv1.LinkRequest, peerv1.LinkResponse]) error
}

func (f fake) Link(s grpc.BidiStreamingServer[peerv1.LinkRequest, peerv1.LinkResponse]) error {
	return f.link(s)
}

func listen(t *testing.T, b *book, site core.SiteID, link func(grpc.BidiStreamingServer[peerv1.LinkRequest, peerv1.LinkResponse]) error) {
	t.Helper()
	lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	peerv1.RegisterPeerServiceServer(server, fake{link: link})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(lis)
	}()
	t.Cleanup(func() {
		server.Stop()
		<-done
	})
	b.set(site, lis.Addr().String())
}

// TestGreetings has peers introduce themselves to a site.
func TestGreetings(t *testing.T) {
	for name, tc := range greetings {
		t.Run(name, func(t *testing.T) {
			h := hello(t, members)
			eu := start(t, newBook(), "eu", nil)
			tc.change(t, h)
			stream := dial(t, eu.address)
			if err := stream.Send(&peerv1.LinkRequest{Frame: &peerv1.LinkRequest_Hello{Hello: h}}); err != nil {
				t.Fatal(err)
			}
			answer, err := stream.Recv()
			switch {
			case tc.says == "" && (err != nil || answer.GetHello().GetSite() != "eu" || answer.GetHello().GetCluster() != "prod"):
				t.Errorf("got %v, %v", answer, err)
			case tc.says != "" && (status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), tc.says)):
				t.Errorf("got %v, %v, want a refusal that says %s", answer, err, tc.says)
			}
		})
	}
}

// TestAnsweredGreetings has a site connect to peers that introduce themselves.
func TestAnsweredGreetings(t *testing.T) {
	for name, tc := range greetings {
		t.Run(name, func(t *testing.T) {
			h := hello(t, members)
			h.Site = "eu"
			tc.change(t, h)
			b := newBook()
			tried := make(chan struct{}, 100)
			frames := make(chan *peerv1.LinkRequest, 100)
			listen(t, b, "eu", func(stream grpc.BidiStreamingServer[peerv1.LinkRequest, peerv1.LinkResponse]) error {
				if _, err := stream.Recv(); err != nil {
					return err
				}
				tried <- struct{}{}
				if err := stream.Send(&peerv1.LinkResponse{Hello: h}); err != nil {
					return err
				}
				for {
					f, err := stream.Recv()
					if err != nil {
						return err
					}
					frames <- f
				}
			})
			us := start(t, b, "us", nil)
			us.links.Send([]message.Envelope{numbered("us", "eu", 1)})
			if tc.says == "" {
				us.awaitLinked("eu")
				if f := <-frames; len(f.GetBatch().GetMessages()) != 1 {
					t.Errorf("%v", f)
				}
				return
			}
			timeout := time.After(greetingTimeout)
			for range 2 {
				select {
				case <-tried:
				case f := <-frames:
					t.Fatalf("%v is sent", f)
				case <-timeout:
					t.Fatalf("it is not tried again; linked to %v", us.links.Connected())
				}
			}
			if n := len(us.links.Connected()); n != 0 || len(frames) != 0 {
				t.Errorf("%d links, %d frames", n, len(frames))
			}
		})
	}
}

// TestAddressOfAnother: the site that answers must be the site that was called.
func TestAddressOfAnother(t *testing.T) {
	b := newBook()
	eu := start(t, b, "eu", nil)
	b.set("as", eu.address)
	us := start(t, b, "us", nil)
	us.awaitLinked("eu")
	us.links.Send([]message.Envelope{numbered("us", "as", 1), numbered("us", "eu", 2)})
	if m := eu.next(); m.Message.Instance != 2 {
		t.Errorf("%+v", m)
	}
	if got := us.links.Connected(); !slices.Equal(got, []core.SiteID{"eu"}) {
		t.Errorf("linked to %v", got)
	}
}

// TestFrames sends a site frames that a peer must not send.
func TestFrames(t *testing.T) {
	known := &peerv1.ProtocolMessage{Kind: peerv1.MessageKind_MESSAGE_KIND_ELECTION, Instance: 7}
	part := func(data string, last bool) *peerv1.LinkRequest {
		return &peerv1.LinkRequest{Frame: &peerv1.LinkRequest_Part{Part: &peerv1.Part{Data: []byte(data), Last: last}}}
	}
	batch := func(messages ...*peerv1.ProtocolMessage) *peerv1.LinkRequest {
		return &peerv1.LinkRequest{Frame: &peerv1.LinkRequest_Batch{Batch: &peerv1.Batch{Messages: messages}}}
	}
	for name, tc := range map[string]struct {
		frames []*peerv1.LinkRequest
		code   codes.Code
	}{
		"an unknown kind is passed over": {[]*peerv1.LinkRequest{batch(&peerv1.ProtocolMessage{Kind: 99}, known)}, codes.OK},
		"an empty batch":                 {[]*peerv1.LinkRequest{batch(), {}, batch(known)}, codes.OK},
		"an empty last part":             {[]*peerv1.LinkRequest{part("", false), part("", true), batch(known)}, codes.OK},
		"a damaged batch of parts":       {[]*peerv1.LinkRequest{part("\xff", false), part("\xff", true)}, codes.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			eu := start(t, newBook(), "eu", nil)
			stream := dial(t, eu.address)
			frames := append([]*peerv1.LinkRequest{{Frame: &peerv1.LinkRequest_Hello{Hello: hello(t, members)}}}, tc.frames...)
			for _, f := range frames {
				if err := stream.Send(f); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := stream.Recv(); err != nil {
				t.Fatal(err)
			}
			if tc.code == codes.OK {
				if m := eu.next(); m.Message.Instance != 7 {
					t.Errorf("%+v", m)
				}
				return
			}
			if _, err := stream.Recv(); status.Code(err) != tc.code {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestClosingEndsIncomingStreams: a site that shuts down lets its peers go.
func TestClosingEndsIncomingStreams(t *testing.T) {
	eu := start(t, newBook(), "eu", nil)
	stream := dial(t, eu.address)
	if err := stream.Send(&peerv1.LinkRequest{Frame: &peerv1.LinkRequest_Hello{Hello: hello(t, members)}}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	eu.stop()
	if _, err := stream.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("got %v", err)
	}
}
