package compare

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/samya-db/samya/client"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/session"
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

// longestID is the length of the longest id of a session's request, in bytes.
const longestID = 32

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
		options := []client.AcquireOption{client.Wait(0), client.RequestID(r.ID)}
		if r.ID == "" {
			options = options[:1]
		}
		grant, err := d.client.Acquire(ctx, r.Entity, 1, options...)
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

// batchDriver makes a call for each batch. Each caller reuses its own message, and has a session
// of its own.
type batchDriver struct {
	unaryDriver
	callers []batchCaller
}

type batchCaller struct {
	message samyav1.BatchRequest
	// session begins the ids of the caller's requests, of which next is the sequence of the
	// next request.
	session string
	next    uint64
}

func openBatches(addr string) (*batchDriver, error) {
	d, err := openUnary(addr)
	if err != nil {
		return nil, err
	}
	callers := make([]batchCaller, batchCallers)
	for i := range callers {
		var id session.ID
		// Read never fails: see package rand.
		_, _ = rand.Read(id[:])
		callers[i].session = id.Text()
	}
	return &batchDriver{unaryDriver: *d, callers: callers}, nil
}

// Acquire makes all operations in a single call.
func (d *batchDriver) Acquire(ctx context.Context, caller int, requests []Request, got []bool) error {
	c := &d.callers[caller]
	in := &c.message
	for len(in.Operations) < len(requests) {
		in.Operations = append(in.Operations, &samyav1.Operation{Operation: &samyav1.Operation_Acquire{
			Acquire: &samyav1.AcquireRequest{Tokens: 1, Wait: noWait},
		}})
	}
	in.Operations = in.Operations[:len(requests)]
	acknowledged := c.next
	for i, r := range requests {
		acquire := in.Operations[i].GetAcquire()
		acquire.Entity, acquire.RequestId, acquire.Acknowledged = r.Entity, r.ID, 0
		if r.ID == "" {
			id := session.Append(append(make([]byte, 0, longestID), c.session...), c.next)
			acquire.RequestId, acquire.Acknowledged = string(id), acknowledged
			c.next++
		}
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
