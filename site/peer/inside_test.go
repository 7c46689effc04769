package peer

import (
	"context"
	"log/slog"
	"testing"
	"time"

	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
	"google.golang.org/grpc"
)

// inside makes the links of site us in a cluster of two. The address of eu, the other
// site, is unknown.
func inside(tweak func(*Config)) (*Links, *link) {
	cfg := Config{
		Cluster: "prod", Self: "us", Members: []core.SiteID{"eu", "us"}, MembersVersion: 1,
		Address: func(core.SiteID) string { return "" },
		Receive: func(core.SiteID, []message.Envelope) {},
		Logger:  slog.New(slog.DiscardHandler),
	}
	if tweak != nil {
		tweak(&cfg)
	}
	l := New(cfg)
	return l, (*l.links.Load())["eu"]
}

// asEU turns a Config into the other site's.
func asEU(c *Config) { c.Self = "eu" }

// numbered is a small message.
func numbered(n uint64) *peerv1.ProtocolMessage {
	return &peerv1.ProtocolMessage{Kind: peerv1.MessageKind_MESSAGE_KIND_ELECTION, Instance: n}
}

// instances are the numbers of messages.
func instances(messages []*peerv1.ProtocolMessage) []uint64 {
	var all []uint64
	for _, m := range messages {
		all = append(all, m.GetInstance())
	}
	return all
}

// called is the stream of a link at the site that opened it.
type called struct {
	clientStream
	send func(*peerv1.LinkRequest) error
	recv func() (*peerv1.LinkResponse, error)
}

func (c called) Send(f *peerv1.LinkRequest) error    { return c.send(f) }
func (c called) Recv() (*peerv1.LinkResponse, error) { return c.recv() }

// caller is the stream of a link at the called site. After the frames nothing comes until
// ctx ends.
type caller struct {
	grpc.BidiStreamingServer[peerv1.LinkRequest, peerv1.LinkResponse]
	ctx    context.Context
	frames chan *peerv1.LinkRequest
}

// calledBy is a caller that sends frames.
func calledBy(ctx context.Context, frames ...*peerv1.LinkRequest) caller {
	c := caller{ctx: ctx, frames: make(chan *peerv1.LinkRequest, len(frames))}
	for _, f := range frames {
		c.frames <- f
	}
	return c
}

func (c caller) Context() context.Context        { return c.ctx }
func (c caller) Send(*peerv1.LinkResponse) error { return nil }

func (c caller) Recv() (*peerv1.LinkRequest, error) {
	if len(c.frames) > 0 {
		return <-c.frames, nil
	}
	<-c.ctx.Done()
	return nil, c.ctx.Err()
}

// helloOf is the frame by which a site introduces itself.
func helloOf(l *Links) *peerv1.LinkRequest {
	return &peerv1.LinkRequest{Frame: &peerv1.LinkRequest_Hello{Hello: l.hello()}}
}

func batchOf(messages ...*peerv1.ProtocolMessage) *peerv1.LinkRequest {
	return &peerv1.LinkRequest{Frame: &peerv1.LinkRequest_Batch{Batch: &peerv1.Batch{Messages: messages}}}
}

// pass lets d pass in a bubble.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	<-time.After(d)
}
