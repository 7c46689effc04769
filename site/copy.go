package site

import (
	"github.com/samya-db/samya/internal/apierr"
	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	"github.com/samya-db/samya/site/journal"
	"github.com/samya-db/samya/site/store"
)

// copiedBytes is about how long a part of a copied base is, in bytes.
const copiedBytes = 512 << 10

// copyBase returns the part of the base that another node of this site asks for.
func (s itself) copyBase(r *peerv1.CopyBaseRequest) (*peerv1.CopyBaseResponse, error) {
	if s.cfg.Nodes == nil {
		return nil, s.noNodes()
	}
	if r.GetCluster() != s.cfg.Cluster || r.GetSite() != s.cfg.Name {
		return nil, apierr.Invalid("site", "this is site "+s.cfg.Name+" of cluster "+s.cfg.Cluster)
	}
	if r.GetAfter().GetBucket() > 255 {
		return nil, apierr.Invalid("after.bucket", "there is no such bucket")
	}
	page, err := s.store.PageOf(store.Cursor{Bucket: journal.Bucket(r.GetAfter().GetBucket()), Key: r.GetAfter().GetKey()}, copiedBytes) //nolint:gosec // at most 255
	if err != nil {
		return nil, apierr.From(err)
	}
	resp := &peerv1.CopyBaseResponse{Through: uint64(page.Through), Sum: page.Sum}
	if page.Next.Bucket != 0 {
		resp.Next = &peerv1.Cursor{Bucket: uint32(page.Next.Bucket), Key: page.Next.Key}
	}
	for i := range page.Records {
		rec := &page.Records[i]
		resp.Records = append(resp.Records, &peerv1.BaseRecord{Bucket: uint32(rec.Bucket), Key: rec.Key, Value: rec.Value})
	}
	return resp, nil
}
