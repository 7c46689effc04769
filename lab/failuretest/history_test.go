package failuretest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/sitetest"
)

// TestHistoriesOfOneSiteAreLinearizable kills a site while clients acquire, release and
// read. Porcupine must find an order of all answers that a quota without failures could
// have given.
func TestHistoriesOfOneSiteAreLinearizable(t *testing.T) {
	beside(t)
	const clients = 8
	seed, rounds, kills := seedOf(t), pick(1, 12), pick(2, 5)
	var sum recorderCounts
	for round := range rounds {
		cluster := start(t, proc.Config{Sites: []string{"us"}})
		c, site := dial(t, cluster.Site(0)), cluster.Site(0)
		r := &recorder{t: t, c: c, began: time.Now()}
		for i := range 3 {
			name := fmt.Sprint("acme/", i)
			r.entities = append(r.entities, name)
			sitetest.Eventually(t, "creating "+name, func() error {
				_, err := c.CreateEntity(t.Context(), &samyav1.CreateEntityRequest{Name: name, Limit: linearLimit, RequestId: name})
				return err
			})
		}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range clients {
			rng := rand.New(rand.NewPCG(seed, uint64(round*clients+i)))
			all.Go(func() { r.client(ctx, i, rng) })
		}
		for range kills {
			pause(t, pick(150*time.Millisecond, 300*time.Millisecond))
			kill(t, site)
			restart(t, site)
		}
		pause(t, 100*time.Millisecond)
		cancel()
		all.Wait()
		r.readAll()
		began := time.Now()
		if got := judge(r.history); got != porcupine.Ok {
			t.Errorf("seed %d, round %d: the history is %s:\n%s", seed, round, got, r)
		}
		t.Logf("round %d: %d operations, %d of unknown outcome, judged in %s",
			round, len(r.history), r.counts.unknown, time.Since(began).Round(time.Millisecond))
		sum.add(r.counts)
		if err := cluster.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if sum.granted == 0 || sum.refused == 0 || sum.released == 0 || sum.read == 0 || long() && (sum.unknown == 0 || sum.repeated == 0) {
		t.Errorf("the histories show too little: %+v", sum)
	}
	report(t, figures{
		{"seed", seed},
		{"histories", rounds},
		{"kills", rounds * kills},
		{"granted", sum.granted},
		{"refused", sum.refused},
		{"released", sum.released},
		{"read", sum.read},
		{"unknown", sum.unknown},
		{"repeated", sum.repeated},
	})
}

// recorder records the operations of a site's clients, and their answers.
type recorder struct {
	t        *testing.T
	c        *client
	began    time.Time
	entities []string

	mu      sync.Mutex
	next    int
	history []porcupine.Operation
	counts  recorderCounts
}

type recorderCounts struct {
	granted, refused, released, read int
	// unknown counts operations given up, repeated operations answered by a repeat.
	unknown, repeated int
}

func (c *recorderCounts) add(o recorderCounts) {
	c.granted += o.granted
	c.refused += o.refused
	c.released += o.released
	c.read += o.read
	c.unknown += o.unknown
	c.repeated += o.repeated
}

func (r *recorder) now() int64 { return time.Since(r.began).Nanoseconds() }

// client makes operations in sequence until ctx ends.
func (r *recorder) client(ctx context.Context, id int, rng *rand.Rand) {
	held := make(map[string]int64)
	for ctx.Err() == nil {
		name := r.entities[rng.IntN(len(r.entities))]
		in := call{entity: name, kind: callAcquire, tokens: 1 + rng.Int64N(6)}
		switch k := rng.IntN(10); {
		case k == 0:
			in = call{entity: name, kind: callRead}
		case k < 6 && held[name] > 0:
			in.kind, in.tokens = callRelease, 1+rng.Int64N(held[name])
			held[name] -= in.tokens
		}
		out, ok := r.perform(id, in, rng.IntN(3) > 0)
		if ok && in.kind == callAcquire && !out.refused && !out.unknown {
			held[name] += in.tokens
		}
	}
}

// perform makes an operation. It repeats an operation of unknown outcome until there is
// an outcome, or gives it up. ok is false for an operation that has not happened: a
// refusal without a look at the tokens, or a failed read.
func (r *recorder) perform(id int, in call, repeats bool) (out outcome, ok bool) {
	r.mu.Lock()
	r.next++
	request := fmt.Sprint("op-", r.next)
	r.mu.Unlock()
	invoked := r.now()
	out, reason := r.send(in, request)
	again := 0
	for ; reason != "" && (again > 0 || !reason.NothingDone()) && repeats && in.kind != callRead; again++ {
		if r.t.Context().Err() != nil || time.Duration(r.now()-invoked) > patience {
			r.t.Errorf("%s: still %s", request, reason)
			return out, false
		}
		out, reason = r.send(in, request)
	}
	returned := r.now()
	if reason != "" {
		if reason.NothingDone() || in.kind == callRead {
			return out, false
		}
		out, returned = outcome{unknown: true}, atInfinity
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history = append(r.history, porcupine.Operation{ClientId: id, Input: in, Call: invoked, Output: out, Return: returned})
	switch {
	case out.unknown:
		r.counts.unknown++
	case out.refused:
		r.counts.refused++
	case in.kind == callRead:
		r.counts.read++
	case in.kind == callRelease:
		r.counts.released++
	default:
		r.counts.granted++
	}
	if again > 0 && !out.unknown {
		r.counts.repeated++
	}
	return out, true
}

// send makes a request, waiting for the site if it is about to come back. A reason means
// that the request has no outcome.
func (r *recorder) send(in call, request string) (outcome, apierr.Reason) {
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	wait := grpc.WaitForReady(true)
	var err error
	out := outcome{}
	switch in.kind {
	case callRead:
		var resp *samyav1.GetEntityResponse
		if resp, err = r.c.GetEntity(ctx, &samyav1.GetEntityRequest{Name: in.entity}, wait); err == nil {
			s := resp.GetUsage().GetShares()[0]
			out.left, out.net = s.GetLeft(), s.GetNet()
		}
	case callRelease:
		var resp *samyav1.ReleaseResponse
		resp, err = r.c.Release(ctx, &samyav1.ReleaseRequest{Entity: in.entity, Tokens: in.tokens, RequestId: request}, wait)
		out.left = resp.GetLeft()
	default:
		var resp *samyav1.AcquireResponse
		resp, err = r.c.Acquire(ctx, &samyav1.AcquireRequest{
			Entity: in.entity, Tokens: in.tokens, RequestId: request, Wait: durationpb.New(0),
		}, wait)
		out.left = resp.GetLeft()
	}
	if reason := reasonOf(err); reason != apierr.OutOfTokens {
		return out, reason
	}
	return outcome{refused: true}, ""
}

// readAll ends a history with reads, which show every executed operation.
func (r *recorder) readAll() {
	for _, name := range r.entities {
		if _, ok := r.perform(0, call{entity: name, kind: callRead}, false); !ok {
			r.t.Errorf("%s cannot be read", name)
		}
	}
}

// String is the history, an operation a line.
func (r *recorder) String() string {
	var text string
	for _, op := range r.history {
		text += fmt.Sprintf("%d..%d client %d: %s\n", op.Call, op.Return, op.ClientId, quota.DescribeOperation(op.Input, op.Output))
	}
	return text
}
