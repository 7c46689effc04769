package appmgr

import (
	"context"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/parts"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Batch implements samyav1.TokenServiceServer.
func (s *service) Batch(ctx context.Context, in *samyav1.BatchRequest) (*samyav1.BatchResponse, error) {
	if err := parts.Check(in); err != nil {
		return nil, apierr.FromName(err)
	}
	if in.GetAtomic() {
		return s.acquireAll(ctx, proto.CloneOf(in))
	}
	all := make([]samyav1.Result, len(in.GetOperations()))
	resp := &samyav1.BatchResponse{Results: make([]*samyav1.Result, len(all))}
	made := make([]operated, len(all))
	s.batch(ctx, "grpc", in.GetOperations(), made)
	for i := range made {
		made[i].tell(&all[i])
		resp.Results[i] = &all[i]
	}
	return resp, nil
}

// operated is the outcome of an operation: acquire, release or err is set.
type operated struct {
	acquire *samyav1.AcquireResponse
	release *samyav1.ReleaseResponse
	err     error
}

// tell fills in the result of a batch's or stream's operation.
func (o *operated) tell(result *samyav1.Result) {
	switch {
	case o.err != nil:
		result.Result = &samyav1.Result_Failure{Failure: apierr.From(o.err).Failure()}
	case o.acquire != nil:
		result.Result = &samyav1.Result_Acquire{Acquire: o.acquire}
	default:
		result.Result = &samyav1.Result_Release{Release: o.release}
	}
}

// batch makes operations from the API, all at once, as far as the guard lets them in. An
// operation that waits for tokens holds up no other. Operations with an error in made are
// skipped. The error of a refused operation names its fields at fault as parts of the
// batch.
func (s *service) batch(ctx context.Context, api string, operations []*samyav1.Operation, made []operated) {
	var under sync.WaitGroup
	for i, op := range operations {
		if made[i].err != nil {
			continue
		}
		under.Go(func() {
			o := &made[i]
			if *o = s.operate(ctx, api, op); o.err != nil {
				o.err = apierr.From(o.err).Within(parts.Field(i, op))
			}
		})
	}
	under.Wait()
}

// operate makes an operation from the API as the call it would be by itself.
func (s *service) operate(ctx context.Context, api string, op *samyav1.Operation) (o operated) {
	switch op := op.GetOperation().(type) {
	case *samyav1.Operation_Acquire:
		o.err = s.guard.do(ctx, api, "Acquire", func() (err error) {
			o.acquire, err = s.Acquire(ctx, op.Acquire)
			return err
		})
	case *samyav1.Operation_Release:
		o.err = s.guard.do(ctx, api, "Release", func() (err error) {
			o.release, err = s.Release(ctx, op.Release)
			return err
		})
	default:
		o.err = apierr.Invalid("operation", "missing: an acquire or a release")
	}
	return o
}
