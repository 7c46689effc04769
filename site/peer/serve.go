package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/samya-db/samya/internal/tlsconf"
	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/wire"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Link implements peerv1.PeerServiceServer: another member's outgoing link.
func (l *Links) Link(stream grpc.BidiStreamingServer[peerv1.LinkRequest, peerv1.LinkResponse]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	from := core.SiteID(first.GetHello().GetSite())
	if err := l.greet(first.GetHello()); err != nil {
		l.refuse(from, err)
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	if err := l.vouched(stream.Context(), string(from)); err != nil {
		l.cfg.Logger.LogAttrs(stream.Context(), slog.LevelWarn, "a peer is refused", slog.Any("error", err))
		return status.Error(codes.PermissionDenied, err.Error())
	}
	over, err := l.follow(from, first.GetHello().GetTerm())
	if err != nil {
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	if err := l.cfg.Speaks(from, speaker(first.GetHello())); err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	if err := stream.Send(&peerv1.LinkResponse{Hello: l.hello()}); err != nil {
		return err
	}
	if k := l.link(from); k != nil {
		k.hear()
	}
	ended := make(chan error, 1)
	go func() { ended <- l.take(stream, from) }()
	select {
	case err := <-ended:
		return err
	case <-stream.Context().Done():
		return status.FromContextError(stream.Context().Err()).Err()
	case <-over:
		return status.Error(codes.FailedPrecondition, errOver.Error())
	case <-l.closing:
		return status.Error(codes.Unavailable, "the site is shutting down")
	}
}

// CopyBase implements peerv1.PeerServiceServer: another node of this site copies its base.
func (l *Links) CopyBase(ctx context.Context, r *peerv1.CopyBaseRequest) (*peerv1.CopyBaseResponse, error) {
	if l.cfg.CopyBase == nil {
		return nil, status.Error(codes.Unimplemented, "the site has no other nodes")
	}
	if err := l.vouched(ctx, string(l.cfg.Self)); err != nil {
		return nil, status.Error(codes.PermissionDenied, err.Error())
	}
	return l.cfg.CopyBase(r)
}

// vouched returns why a peer that claims the name of a site is not believed, or nil: no
// member speaks for another.
func (l *Links) vouched(ctx context.Context, name string) error {
	if l.cfg.TLS == nil {
		return nil
	}
	id, err := tlsconf.PeerIdentity(ctx)
	if err != nil {
		return fmt.Errorf("site %q does not prove that it is: %w", name, err)
	}
	if want := (tlsconf.Identity{Kind: tlsconf.Site, Name: name}); id != want {
		return fmt.Errorf("%w: %s introduces itself as %s", tlsconf.ErrIdentity, id, want)
	}
	return nil
}

// take receives a member's frames until the stream ends.
func (l *Links) take(stream grpc.BidiStreamingServer[peerv1.LinkRequest, peerv1.LinkResponse], from core.SiteID) error {
	var parts []byte
	for {
		frame, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		batch := frame.GetBatch()
		if part := frame.GetPart(); part != nil {
			if parts, batch, err = join(parts, part); err != nil {
				return status.Error(codes.InvalidArgument, err.Error())
			}
		}
		l.receive(stream, from, batch)
	}
}

// join adds a part to the earlier parts, and returns the batch once it is whole.
func join(parts []byte, part *peerv1.Part) ([]byte, *peerv1.Batch, error) {
	if len(parts)+len(part.GetData()) > maxWhole {
		return nil, nil, fmt.Errorf("a batch of more than %d bytes", maxWhole)
	}
	parts = append(parts, part.GetData()...)
	if !part.GetLast() {
		return parts, nil, nil
	}
	var batch peerv1.Batch
	if err := proto.Unmarshal(parts, &batch); err != nil {
		return nil, nil, fmt.Errorf("decoding a batch of parts: %w", err)
	}
	return nil, &batch, nil
}

func (l *Links) receive(stream grpc.ServerStream, from core.SiteID, batch *peerv1.Batch) {
	messages := make([]message.Envelope, 0, len(batch.GetMessages()))
	for _, p := range batch.GetMessages() {
		e, err := wire.Decode(p, from, l.cfg.Self)
		if err != nil {
			l.cfg.Logger.LogAttrs(stream.Context(), slog.LevelWarn, "a message is dropped",
				slog.String("peer", string(from)), slog.Any("error", err))
			continue
		}
		messages = append(messages, e)
	}
	if len(messages) > 0 {
		l.cfg.Receive(from, messages)
	}
}
