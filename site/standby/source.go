package standby

import (
	"context"
	"fmt"
	"math"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/samya-db/samya/internal/tlsconf"
	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	"github.com/samya-db/samya/site/journal"
	"github.com/samya-db/samya/site/replica"
	"github.com/samya-db/samya/site/store"
)

// source is the active node, the source of this node's copy.
type source struct {
	*node
	conn   *grpc.ClientConn
	origin replica.Origin
}

var _ store.Source = (*source)(nil)

func (n *node) dialSource(addr string, origin replica.Origin) (*source, error) {
	cfg := &n.cfg
	creds := insecure.NewCredentials()
	if cfg.Site.TLS != nil {
		creds = cfg.Site.TLS.ClientCredentials(tlsconf.Identity{Kind: tlsconf.Site, Name: cfg.Site.Name})
	}
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(creds))
	if err != nil {
		return nil, fmt.Errorf("connecting to the active node at %s: %w", addr, err)
	}
	return &source{n, conn, origin}, nil
}

func (s *source) close() { _ = s.conn.Close() } // it served calls that have ended

// Pin implements store.Source.
func (s *source) Pin(through journal.Number) error { return s.pin(through) }

// Reaches implements store.Source.
func (s *source) Reaches(through journal.Number) (bool, error) { return s.reaches(s.origin, through) }

// Fetch implements store.Source: it asks the active node.
func (s *source) Fetch(ctx context.Context, after store.Cursor) (store.Page, error) {
	r := &peerv1.CopyBaseRequest{Cluster: s.cfg.Site.Cluster, Site: s.cfg.Site.Name, Node: s.cfg.Node}
	if after.Bucket != 0 {
		r.After = &peerv1.Cursor{Bucket: uint32(after.Bucket), Key: after.Key}
	}
	resp, err := peerv1.NewPeerServiceClient(s.conn).CopyBase(ctx, r)
	if err != nil {
		return store.Page{}, fmt.Errorf("asking the active node: %w", err)
	}
	p := store.Page{Through: journal.Number(resp.GetThrough()), Sum: resp.GetSum()}
	if next := resp.GetNext(); next != nil {
		if next.GetBucket() > math.MaxUint8 {
			return store.Page{}, fmt.Errorf("a part of a copy ends in bucket %d", next.GetBucket())
		}
		p.Next = store.Cursor{Bucket: journal.Bucket(next.GetBucket()), Key: next.GetKey()} //nolint:gosec // checked
	}
	for _, rec := range resp.GetRecords() {
		if rec.GetBucket() > math.MaxUint8 {
			return store.Page{}, fmt.Errorf("a copied record is of bucket %d", rec.GetBucket())
		}
		p.Records = append(p.Records, journal.Op{Kind: journal.Put, Bucket: journal.Bucket(rec.GetBucket()), Key: rec.GetKey(), Value: rec.GetValue()})
	}
	return p, nil
}
