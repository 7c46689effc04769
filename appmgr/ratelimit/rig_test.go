package ratelimit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/apierr/refuse"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// noon is the time of tests: 90 seconds before the end of an hour, a Wednesday.
var noon = time.Date(2026, 7, 1, 12, 58, 30, 0, time.UTC)

// quotas is a cluster of a single site: entities, and what is left of them.
type quotas struct {
	mu       sync.Mutex
	entities map[string]*samyav1.Entity
	left     map[string]int64
	// calls counts calls by name; fails are the errors of the next calls by name.
	calls map[string]int
	fails map[string][]error
	// hold is closed to let creations go on; nil: they go on at once.
	hold chan struct{}
	// waits are the waits of acquires.
	waits []time.Duration
}

func newQuotas() *quotas {
	return &quotas{entities: map[string]*samyav1.Entity{}, left: map[string]int64{}, calls: map[string]int{}, fails: map[string][]error{}}
}

// called counts a call, and returns the error that it is to have.
func (q *quotas) called(name string) error {
	q.calls[name]++
	if errs := q.fails[name]; len(errs) > 0 {
		q.fails[name] = errs[1:]
		return errs[0]
	}
	return nil
}

func (q *quotas) AcquireInPlace(_ context.Context, in *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if in.GetDryRun() {
		if err := q.called("dry"); err != nil {
			return nil, err
		}
	} else {
		q.waits = append(q.waits, in.GetWait().AsDuration())
		if err := q.called("acquire"); err != nil {
			return nil, err
		}
	}
	tokens, err := q.fits(in.GetEntity(), in.GetTokens(), in.GetMinTokens())
	if err != nil {
		return nil, err
	}
	if !in.GetDryRun() {
		q.left[in.GetEntity()] -= tokens
	}
	return &samyav1.AcquireResponse{Tokens: tokens, Left: q.left[in.GetEntity()]}, nil
}

// find is the entity of a name, or the template of a key, which has all its tokens at first.
func (q *quotas) find(name string) *samyav1.Entity {
	e := q.entities[name]
	for at := strings.LastIndexByte(name, '/'); e == nil && at > 0; at = strings.LastIndexByte(name[:at], '/') {
		if e = q.entities[name[:at]]; !e.GetKeys() {
			e = nil
		}
	}
	if _, used := q.left[name]; e != nil && !used {
		q.left[name] = e.GetLimit()
	}
	return e
}

// fits returns how many of the tokens an entity has, or its refusal.
func (q *quotas) fits(entity string, tokens, least int64) (int64, error) {
	e := q.find(entity)
	left := q.left[entity]
	switch {
	case e == nil:
		return 0, apierr.NotFound(entity)
	case least > 0 && left >= least:
		return min(left, tokens), nil
	case tokens > e.GetLimit():
		return 0, &apierr.Error{Reason: apierr.ExceedsLimit, Entity: entity, Limit: new(e.GetLimit())}
	case tokens > left:
		return 0, refuse.NoTokens(entity, "us", tokens, left, time.Second)
	}
	return tokens, nil
}

func (q *quotas) Batch(_ context.Context, in *samyav1.BatchRequest) (*samyav1.BatchResponse, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.called("batch"); err != nil {
		return nil, err
	}
	if !in.GetAtomic() {
		return nil, apierr.New(apierr.Internal, "not atomic")
	}
	sums := map[string]int64{}
	for _, op := range in.GetOperations() {
		sums[op.GetAcquire().GetEntity()] += op.GetAcquire().GetTokens()
	}
	for entity, tokens := range sums {
		if _, err := q.fits(entity, tokens, 0); err != nil {
			e := apierr.From(err)
			if e.Reason == apierr.EntityNotFound {
				return nil, e
			}
			e.Entity = ""
			return nil, e.LackedBy(entity, tokens)
		}
	}
	for entity, tokens := range sums {
		q.left[entity] -= tokens
	}
	return &samyav1.BatchResponse{}, nil
}

func (q *quotas) CreateEntity(_ context.Context, in *samyav1.CreateEntityRequest) (*samyav1.CreateEntityResponse, error) {
	if q.hold != nil {
		<-q.hold
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.called("create"); err != nil {
		return nil, err
	}
	if q.entities[in.GetName()] != nil {
		return nil, refuse.Exists(in.GetName())
	}
	e := &samyav1.Entity{Name: in.GetName(), Limit: in.GetLimit(), Per: in.GetPer(), Kind: in.GetKind(), Keys: in.GetKeys(), Version: 1}
	q.entities[in.GetName()], q.left[in.GetName()] = e, in.GetLimit()
	return &samyav1.CreateEntityResponse{Entity: e}, nil
}

func (q *quotas) UpdateEntity(_ context.Context, in *samyav1.UpdateEntityRequest) (*samyav1.UpdateEntityResponse, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.called("update"); err != nil {
		return nil, err
	}
	e := q.entities[in.GetName()]
	if e.GetVersion() != in.GetExpectedVersion() {
		return nil, apierr.New(apierr.VersionMismatch, "another version")
	}
	for name := range q.left {
		if name == in.GetName() || e.GetKeys() && strings.HasPrefix(name, in.GetName()+"/") {
			q.left[name] += in.GetLimit() - e.GetLimit()
		}
	}
	e.Limit, e.Version = in.GetLimit(), e.GetVersion()+1
	return &samyav1.UpdateEntityResponse{Entity: e}, nil
}

func (q *quotas) GetEntity(_ context.Context, in *samyav1.GetEntityRequest) (*samyav1.GetEntityResponse, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.called("get"); err != nil {
		return nil, err
	}
	e := q.entities[in.GetName()]
	if e == nil {
		return nil, apierr.NotFound(in.GetName())
	}
	return &samyav1.GetEntityResponse{Entity: e}, nil
}

// rig is a service over quotas.
type rig struct {
	*Service
	*quotas
	t        *testing.T
	dir      string
	registry *prometheus.Registry
}

// newRig makes a service with rules.
func newRig(t *testing.T, rules string, change func(*Settings)) *rig {
	t.Helper()
	r := &rig{quotas: newQuotas(), t: t, dir: t.TempDir(), registry: prometheus.NewRegistry()}
	r.write("rules.yaml", rules)
	s := Settings{Dir: r.dir, Wait: time.Second}
	if change != nil {
		change(&s)
	}
	entities := NewEntities(r.quotas, s)
	var err error
	r.Service, err = New(Config{Settings: s, Backend: entities, Registry: r.registry, Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// write writes a file of rules.
func (r *rig) write(name, rules string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(rules), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// request reads a request: descriptors with a semicolon between them, each "key=value,…"
// and maybe "*hits" at its end.
func request(domain, text string) *ratelimitv3.RateLimitRequest {
	in := &ratelimitv3.RateLimitRequest{Domain: domain}
	for one := range strings.SplitSeq(text, ";") {
		d := &commonv3.RateLimitDescriptor{}
		one, hits, own := strings.Cut(one, "*")
		if own {
			var n uint64
			if _, err := fmt.Sscan(hits, &n); err != nil {
				panic(err)
			}
			d.HitsAddend = wrapperspb.UInt64(n)
		}
		for pair := range strings.SplitSeq(one, ",") {
			key, value, _ := strings.Cut(pair, "=")
			d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{Key: key, Value: value})
		}
		in.Descriptors = append(in.Descriptors, d)
	}
	return in
}

// ask asks about a request, and returns its decision in short: the overall code, and for
// each descriptor its code and what is left.
func (r *rig) ask(in *ratelimitv3.RateLimitRequest) string {
	r.t.Helper()
	out, err := r.ShouldRateLimit(r.t.Context(), in)
	if err != nil {
		return err.Error()
	}
	short := map[ratelimitv3.RateLimitResponse_Code]string{ratelimitv3.RateLimitResponse_OK: "ok", ratelimitv3.RateLimitResponse_OVER_LIMIT: "over"}
	told := short[out.GetOverallCode()] + ":"
	for _, s := range out.GetStatuses() {
		told += fmt.Sprintf(" %s/%d", short[s.GetCode()], s.GetLimitRemaining())
	}
	return told
}
