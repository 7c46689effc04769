package reads

import (
	"context"

	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// GetMode implements samyav1.ClusterServiceServer: it asks all member sites for the mode
// they use. Mode in the answer has the highest version of all.
func (s *Reads) GetMode(ctx context.Context, in *samyav1.GetModeRequest) (*samyav1.GetModeResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	members, err := s.router.Members(ctx)
	if err != nil {
		return nil, err
	}
	answers := make([]*samyav1.GetModeResponse, len(members))
	errs := s.everywhere(members, func(i int, site string) error {
		answers[i] = &samyav1.GetModeResponse{}
		return s.router.At(ctx, site, route.Call{Method: samyav1.ClusterService_GetMode_FullMethodName, Req: in, Resp: answers[i], Read: true})
	})
	out := &samyav1.GetModeResponse{Complete: true}
	for i, m := range members {
		if errs[i] != nil {
			out.Complete = false
			out.Sites = append(out.Sites, &samyav1.SiteMode{Site: m.GetName()})
			continue
		}
		if mode := answers[i].GetMode(); out.GetMode() == nil || mode.GetVersion() > out.GetMode().GetVersion() {
			out.Mode = mode
		}
		out.Sites = append(out.Sites, answers[i].GetSites()...)
	}
	if out.GetMode() == nil {
		return nil, apierr.Unreachable("")
	}
	return out, nil
}
