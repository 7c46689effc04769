package grpcapi

import (
	"errors"
	"testing"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestGRPCMove: no site gets an invalid move.
func TestGRPCMove(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		_, err := r.service.MoveEntity(t.Context(), &samyav1.MoveEntityRequest{
			Name: "a//b", Parent: "c/", ExpectedGeneration: MaxVersion + 1, RequestId: " ",
		})
		e, ok := errors.AsType[*apierr.Error](err)
		if !ok || len(e.Violations) != 4 {
			t.Errorf("error %v", err)
		}
		out, err := r.service.MoveEntity(t.Context(), &samyav1.MoveEntityRequest{Name: "a", Parent: "b"})
		if err != nil || out.GetEntity().GetParent() != "b" {
			t.Errorf("%v, %v", out, err)
		}
	})
}
