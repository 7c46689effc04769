package compare

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/samya-db/samya/client"
	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// errAnswer says that an answer does not fit its request.
var errAnswer = errors.New("an answer to something else")

// granted reports whether a result is a grant. It fails on a result that is neither
// a grant nor a want of tokens.
func granted(result *samyav1.Result) (bool, error) {
	switch {
	case result.GetAcquire().GetTokens() == 1:
		return true, nil
	case result.GetFailure() == nil:
		return false, errAnswer
	}
	if err := apierr.FromFailure(result.GetFailure()); err.Reason != apierr.OutOfTokens {
		return false, err
	}
	return false, nil
}

// sdkDriver has all callers share a client, and thus a stream.
type sdkDriver struct{ client *client.Client }

func openSDK(addr string, patience time.Duration) (*sdkDriver, error) {
	c, err := client.New(client.Config{
		Targets: []client.Target{{Address: addr}}, Timeout: patience, RepeatTime: patience,
	})
	if err != nil {
		return nil, err
	}
	return &sdkDriver{client: c}, nil
}

// Acquire makes the operations in turn.
func (d *sdkDriver) Acquire(ctx context.Context, _ int, requests []Request, got []bool) error {
	for i, r := range requests {
		grant, err := d.client.Acquire(ctx, r.Entity, 1, client.RequestID(r.ID), client.Wait(0))
		switch {
		case err == nil:
			got[i] = grant.Tokens == 1
		case errors.Is(err, client.ErrOutOfTokens):
			got[i] = false
		default:
			return fmt.Errorf("request %s: %w", r.ID, err)
		}
	}
	return nil
}

// Close closes the client.
func (d *sdkDriver) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return d.client.Close(ctx)
}

// batchDriver makes a call for each batch. Each caller reuses its own message.
type batchDriver struct {
	unaryDriver
	messages []samyav1.BatchRequest
}

func openBatches(addr string) (*batchDriver, error) {
	d, err := openUnary(addr)
	if err != nil {
		return nil, err
	}
	return &batchDriver{unaryDriver: *d, messages: make([]samyav1.BatchRequest, batchCallers)}, nil
}

// Acquire makes all operations in a single call.
func (d *batchDriver) Acquire(ctx context.Context, caller int, requests []Request, got []bool) error {
	in := &d.messages[caller]
	for len(in.Operations) < len(requests) {
		in.Operations = append(in.Operations, &samyav1.Operation{Operation: &samyav1.Operation_Acquire{
			Acquire: &samyav1.AcquireRequest{Tokens: 1, Wait: noWait},
		}})
	}
	in.Operations = in.Operations[:len(requests)]
	for i, r := range requests {
		acquire := in.Operations[i].GetAcquire()
		acquire.Entity, acquire.RequestId = r.Entity, r.ID
	}
	out, err := d.client.Batch(ctx, in)
	if err != nil {
		return err
	}
	if len(out.GetResults()) != len(requests) {
		return fmt.Errorf("%d results of %d operations: %w", len(out.GetResults()), len(requests), errAnswer)
	}
	for i, result := range out.GetResults() {
		if got[i], err = granted(result); err != nil {
			return fmt.Errorf("request %s: %w", requests[i].ID, err)
		}
	}
	return nil
}
