package grpcapi

import (
	"context"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/parts"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Batch implements samyav1.TokenServiceServer.
func (s *Service) Batch(ctx context.Context, in *samyav1.BatchRequest) (*samyav1.BatchResponse, error) {
	if err := parts.Check(in); err != nil {
		return nil, apierr.FromName(err)
	}
	if in.GetAtomic() {
		return s.AcquireAll(ctx, proto.CloneOf(in))
	}
	all := make([]samyav1.Result, len(in.GetOperations()))
	resp := &samyav1.BatchResponse{Results: make([]*samyav1.Result, len(all))}
	made := make([]Operated, len(all))
	s.DoAll(ctx, "grpc", in.GetOperations(), made)
	for i := range made {
		made[i].tell(&all[i])
		resp.Results[i] = &all[i]
	}
	return resp, nil
}

// Operated is the outcome of an operation: acquire, release or err is set.
type Operated struct {
	Acquire *samyav1.AcquireResponse
	Release *samyav1.ReleaseResponse
	Err     error
}

// tell fills in the result of a batch's or stream's operation.
func (o *Operated) tell(result *samyav1.Result) {
	switch {
	case o.Err != nil:
		result.Result = &samyav1.Result_Failure{Failure: apierr.From(o.Err).Failure()}
	case o.Acquire != nil:
		result.Result = &samyav1.Result_Acquire{Acquire: o.Acquire}
	default:
		result.Result = &samyav1.Result_Release{Release: o.Release}
	}
}

// DoAll makes operations from the API, all at once, as far as the limiter lets them in. An
// operation that waits for tokens holds up no other. Operations with an error in made are
// skipped. The error of a refused operation names its fields at fault as parts of the
// batch.
func (s *Service) DoAll(ctx context.Context, api string, operations []*samyav1.Operation, made []Operated) {
	var under sync.WaitGroup
	for i, op := range operations {
		if made[i].Err != nil {
			continue
		}
		under.Go(func() {
			o := &made[i]
			if *o = s.operate(ctx, api, op); o.Err != nil {
				o.Err = apierr.From(o.Err).Within(parts.Field(i, op))
			}
		})
	}
	under.Wait()
}

// operate makes an operation from the API as the call it would be by itself.
func (s *Service) operate(ctx context.Context, api string, op *samyav1.Operation) (o Operated) {
	switch op := op.GetOperation().(type) {
	case *samyav1.Operation_Acquire:
		o.Err = s.limiter.Do(ctx, api, "Acquire", func() (err error) {
			o.Acquire, err = s.Acquire(ctx, op.Acquire)
			return err
		})
	case *samyav1.Operation_Release:
		o.Err = s.limiter.Do(ctx, api, "Release", func() (err error) {
			o.Release, err = s.Release(ctx, op.Release)
			return err
		})
	default:
		o.Err = apierr.Invalid("operation", "missing: an acquire or a release")
	}
	return o
}
