package grpcapi

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/samya-db/samya/appmgr/fake"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestWaitAppliedGoesOnElsewhere: if the site of a waiting change goes away, the next
// site gets the change under the same id.
func TestWaitAppliedGoesOnElsewhere(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		var ids, sites []string
		waits := func(name string) {
			r.sites[name].OnUpdate = func(ctx context.Context, in *samyav1.UpdateEntityRequest) (*samyav1.UpdateEntityResponse, error) {
				if !in.GetWaitApplied() || in.GetExpectedVersion() != 7 {
					t.Errorf("%s is asked %v", name, in)
				}
				ids, sites = append(ids, in.GetRequestId()), append(sites, name)
				if name == "us" {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				deadline, _ := ctx.Deadline()
				<-time.After(time.Until(deadline) - time.Second)
				return &samyav1.UpdateEntityResponse{Entity: fake.Ent(in.GetLimit(), 1, 8), MayExceedBy: 9, MissingSites: []string{"us"}}, nil
			}
		}
		waits("us")
		waits("eu")
		began := time.Now()
		go func() {
			fake.Pass(3 * time.Second)
			r.sites["us"].Kill()
		}()
		resp, err := r.service.UpdateEntity(t.Context(), &samyav1.UpdateEntityRequest{Name: "e", Limit: 1, ExpectedVersion: 7, WaitApplied: true})
		if err != nil || resp.GetMayExceedBy() != 9 || !slices.Equal(resp.GetMissingSites(), []string{"us"}) {
			t.Errorf("%v, %v", resp, err)
		}
		if !slices.Equal(sites, []string{"us", "eu"}) || ids[0] != ids[1] || ids[0] == "" {
			t.Errorf("asked %v under %v", sites, ids)
		}
		if d := time.Since(began); d > changeTime {
			t.Errorf("it took %v", d)
		}
	})
}
