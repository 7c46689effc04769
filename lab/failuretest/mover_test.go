package failuretest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/samya-db/samya/devcluster/ledger"
	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// movers are callers who acquire and release straight at sites. They keep each site's
// answers and the requests of unknown outcome.
type movers struct {
	clients []*client
	prefix  string
	next    atomic.Uint64

	mu      sync.Mutex
	held    int64
	given   []given
	unknown []given
}

// given is an answer and the client of the answering site.
type given struct {
	client *client
	answer answer
}

// move makes a request. Most acquires come to the first site and all releases to the
// others, so that the first site runs short again and again.
func (m *movers) move(ctx context.Context) {
	a := answer{id: fmt.Sprintf("%s-%d", m.prefix, m.next.Add(1)), kind: ledger.Acquire, asked: 1 + rand.Int64N(5)}
	m.mu.Lock()
	if m.held >= a.asked && rand.IntN(2) == 0 {
		a.kind = ledger.Release
		m.held -= a.asked // nobody else may give them back
	}
	m.mu.Unlock()
	c := m.clients[0]
	if a.kind == ledger.Release || rand.IntN(6) == 0 {
		c = m.clients[len(m.clients)-1-rand.IntN(max(1, len(m.clients)-1))]
	}
	// The call's own deadline ends it: a call under way when ctx ends still has an
	// outcome.
	m.book(given{c, send(context.WithoutCancel(ctx), c, a, 500*time.Millisecond)})
}

// book counts an answer, and keeps a request of unknown outcome for settle.
func (m *movers) book(g given) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case g.answer.reason == "":
		if g.answer.kind == ledger.Acquire {
			m.held += g.answer.tokens
		}
		m.given = append(m.given, g)
	case g.answer.reason == apierr.OutOfTokens:
		m.given = append(m.given, g)
	case g.answer.reason.NothingDone():
		if g.answer.kind == ledger.Release {
			m.held += g.answer.asked
		}
	default:
		m.unknown = append(m.unknown, g)
	}
}

// settle repeats the requests without an outcome at their sites, and returns their
// number. A repeat without an outcome fails the test.
func (m *movers) settle(t *testing.T) int {
	t.Helper()
	unknown := m.unknown
	m.unknown = nil
	for _, g := range unknown {
		g.answer = repeat(t.Context(), g.client, g.answer)
		if r := g.answer.reason; r != "" && r != apierr.OutOfTokens {
			t.Fatalf("%s does not settle %s: %s", g.client.site.Name, g.answer.id, r)
		}
		m.book(g)
	}
	return len(unknown)
}

// check repeats every answered request and compares the answers, then the books with the
// callers' holdings. It returns the number of repeats. Before each repeat it uses the id
// for another request: a site that lost the first request would not refuse the other.
func (m *movers) check(t *testing.T, limit int64) int {
	t.Helper()
	for _, g := range m.given {
		other := g.answer
		other.asked++
		if probe := repeat(t.Context(), g.client, other); probe.reason != apierr.RequestIDReused {
			t.Errorf("%s answered %+v, and another request under its id %+v", g.client.site.Name, g.answer, probe)
		}
		if again := repeat(t.Context(), g.client, g.answer); again != g.answer {
			t.Errorf("%s answered %+v, and the repeat %+v", g.client.site.Name, g.answer, again)
		}
	}
	settled(t, limit, m.held, m.clients...)
	repeated := len(m.given)
	m.given = nil
	return repeated
}

// send sends a request to a site and returns its answer. It does not wait for
// a site that is down, unless the options say so.
func send(ctx context.Context, c *client, a answer, wait time.Duration, opts ...grpc.CallOption) answer {
	return sendAttempt(ctx, c, a, 1, wait, opts...)
}

// sendAttempt is send for any attempt. A later attempt makes the site ask the other sites
// about earlier attempts.
func sendAttempt(
	ctx context.Context, c *client, a answer, attempt uint32, wait time.Duration, opts ...grpc.CallOption,
) answer {
	var notAfter *timestamppb.Timestamp
	if attempt > 1 {
		notAfter = timestamppb.New(time.Now().Add(patience))
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	got := answer{id: a.id, kind: a.kind, asked: a.asked, site: c.site.Name}
	var moved interface {
		GetTokens() int64
		GetLeft() int64
		GetSite() string
	}
	var err error
	switch a.kind {
	case ledger.Acquire:
		moved, err = c.Acquire(ctx, &samyav1.AcquireRequest{
			Entity: entity, Tokens: a.asked, RequestId: a.id, Wait: durationpb.New(wait),
			Attempt: attempt, NotAfter: notAfter,
		}, opts...)
	case ledger.Release:
		moved, err = c.Release(ctx, &samyav1.ReleaseRequest{
			Entity: entity, Tokens: a.asked, RequestId: a.id, Attempt: attempt, NotAfter: notAfter,
		}, opts...)
	}
	if err != nil {
		got.reason = apierr.FromGRPC(err).Reason
		return got
	}
	got.tokens, got.left, got.site = moved.GetTokens(), moved.GetLeft(), moved.GetSite()
	return got
}

// repeat sends a request again, straight to its site, and returns the answer.
func repeat(ctx context.Context, c *client, a answer) answer {
	return send(ctx, c, a, 0, grpc.WaitForReady(true))
}

// repeatRelayed is repeat for an answer that came through an app manager. If a later try
// of the app manager got the answer, the site takes the plain repeat for an earlier try.
// Then the caller's next attempt has the same answer.
func repeatRelayed(ctx context.Context, c *client, a answer) answer {
	again := repeat(ctx, c, a)
	if again.reason == apierr.Superseded {
		again = sendAttempt(ctx, c, a, 2, 0, grpc.WaitForReady(true))
	}
	return again
}
