package standby

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/samya-db/samya/internal/tlsconf"
	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	"github.com/samya-db/samya/site/journal"
	"github.com/samya-db/samya/site/store"
)

// source is the active node, the source of this node's copy.
type source struct {
	conn *grpc.ClientConn
	cfg  *Config
}

func dialSource(addr string, cfg *Config) (*source, error) {
	creds := insecure.NewCredentials()
	if cfg.Site.TLS != nil {
		creds = cfg.Site.TLS.ClientCredentials(tlsconf.Identity{Kind: tlsconf.Site, Name: cfg.Site.Name})
	}
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(creds))
	if err != nil {
		return nil, fmt.Errorf("connecting to the active node at %s: %w", addr, err)
	}
	return &source{conn, cfg}, nil
}

func (s *source) close() { _ = s.conn.Close() } // it served calls that have ended

// fetch asks for the part of the base behind a cursor.
func (s *source) fetch(ctx context.Context, after store.Cursor) (store.Page, error) {
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
		p.Next = store.Cursor{Bucket: journal.Bucket(next.GetBucket()), Key: next.GetKey()} //nolint:gosec // a wrong bucket is refused below
	}
	for _, rec := range resp.GetRecords() {
		if rec.GetBucket() > 255 {
			return store.Page{}, fmt.Errorf("a copied record is of bucket %d", rec.GetBucket())
		}
		p.Records = append(p.Records, journal.Op{Kind: journal.Put, Bucket: journal.Bucket(rec.GetBucket()), Key: rec.GetKey(), Value: rec.GetValue()})
	}
	return p, nil
}
