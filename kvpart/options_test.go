package kvpart_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/kvpart"
	"github.com/samya-db/samya/kvpart/control"
	"github.com/samya-db/samya/kvpart/engine"
)

func TestOptions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*kvpart.Options)
		says   string
	}{
		"strategy":      {func(o *kvpart.Options) { o.Strategy = "softer" }, `Strategy: "softer", want one of`},
		"no strategy":   {func(o *kvpart.Options) { o.Strategy = "" }, `Strategy: ""`},
		"partitions":    {func(o *kvpart.Options) { o.Partitions = 1025 }, "Partitions: 1025, want 1 to 1024"},
		"negative":      {func(o *kvpart.Options) { o.Partitions = -1 }, "Partitions: -1, want 1 to 1024"},
		"backend":       {func(o *kvpart.Options) { o.Backend = "tape" }, `Backend: unknown backend "tape": registered are bbolt`},
		"no directory":  {func(o *kvpart.Options) { o.Backend = "bbolt" }, "Dirs: none, want one at least"},
		"directories":   {func(o *kvpart.Options) { o.Dirs = []string{"x"} }, `Dirs: ["x"], want none`},
		"doubles":       {func(o *kvpart.Options) { o.Backend, o.Dirs = "bbolt", []string{"x", "x"} }, `Dirs: "x" at 1`},
		"queue":         {func(o *kvpart.Options) { o.Queue = 1<<24 + 1 }, "Queue: 16777217, want 1 to 16777216"},
		"generations":   {func(o *kvpart.Options) { o.Generations = 1 }, "Generations: 1, want 2 to 64"},
		"cache":         {func(o *kvpart.Options) { o.Cache = -1 }, "Cache: -1, want 0 to"},
		"place":         {func(o *kvpart.Options) { o.Place = "here" }, `Place: "here", want`},
		"name":          {func(o *kvpart.Options) { o.Engine, o.Backend = new(engine.Factory), "a-b" }, `Backend: "a-b", want a name of letters`},
		"policy":        {func(o *kvpart.Options) { o.Policy.Kind = "often" }, `Policy.Kind: "often", want`},
		"bare policy":   {func(o *kvpart.Options) { o.Strategy, o.Policy.Kind = kvpart.Bare, kvpart.Async }, `Policy.Kind: "async", want "static" with strategy "engine"`},
		"operations":    {func(o *kvpart.Options) { o.Policy.Kind = kvpart.Base }, `Policy.Operations: 0, want 1 at least for "base"`},
		"window":        {func(o *kvpart.Options) { o.Policy.Window = -1 }, "Policy.Window: -1, want 0 to"},
		"every":         {func(o *kvpart.Options) { o.Policy.Every = -time.Second }, "Policy.Every: -1000000000, want 0 to"},
		"gain":          {func(o *kvpart.Options) { o.Policy.Gain = math.NaN() }, "Policy.Gain: NaN, want"},
		"share":         {func(o *kvpart.Options) { o.Policy.Share = -.1 }, "Policy.Share: -0.1, want 0 to"},
		"sample":        {func(o *kvpart.Options) { o.Policy.Sample = 1.5 }, "Policy.Sample: 1.5, want 0 to 1"},
		"few vertices":  {func(o *kvpart.Options) { o.Policy.Vertices = 1 }, "Policy.Vertices: 1, want"},
		"few edges":     {func(o *kvpart.Options) { o.Policy.Edges = 1 }, "Policy.Edges: 1, want"},
		"bad imbalance": {func(o *kvpart.Options) { o.Policy.Imbalance = -1 }, "Policy.Imbalance: -1, want 0 to"},
		"balance":       {func(o *kvpart.Options) { o.Policy.Balance = "disc" }, `Policy.Balance: "disc", want one of`},
		"static":        {func(o *kvpart.Options) { o.Policy.Balance = kvpart.BalanceLibra }, `Policy.Balance: "libra", want "graph" with policy "static"`},
		"tolerance":     {func(o *kvpart.Options) { o.Policy.Tolerance = 1 }, "Policy.Tolerance: 1, want above 0 and below 1"},
		"stretch":       {func(o *kvpart.Options) { o.Policy.Stretch = 1001 }, "Policy.Stretch: 1001, want"},
	} {
		o := kvpart.Options{Strategy: kvpart.Soft, Backend: "btree"}
		c.change(&o)
		if s, err := kvpart.Open(o); !errors.Is(err, kvpart.ErrOptions) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v, want %q", name, s, err, c.says)
		}
	}
}

// TestPolicyIsPassedOn: the controller of a store gets each number of its policy.
func TestPolicyIsPassedOn(t *testing.T) {
	t.Parallel()
	o := kvpart.Options{Policy: kvpart.Policy{
		Kind: kvpart.Base, Operations: 1, Window: 2, Every: 3, Gain: .4, Share: .5, Sample: .6,
		Vertices: 7, Edges: 8, Imbalance: .9, Stretch: 1, Replace: true, Balance: kvpart.BalanceBoth, Tolerance: .11,
	}}
	want := control.Policy{
		Kind: control.Base, Operations: 1, Window: 2, Every: 3, Gain: .4, Share: .5, Sample: .6,
		Vertices: 7, Edges: 8, Imbalance: .9, Stretch: 1, Replace: true, Balance: control.Both, Tolerance: .11,
	}
	if got := kvpart.ControlPolicy(&o); got != want {
		t.Errorf("%+v becomes %+v", o.Policy, got)
	}
}

// TestRefusals makes the requests that a store refuses.
func TestRefusals(t *testing.T) {
	each(t, func(t *testing.T, c combination) {
		t.Helper()
		s := open(t, c.options(t))
		ctx := t.Context()
		long := strings.Repeat("k", kvpart.MaxKey+1)
		nothing := func(kvpart.Tx) error { return nil }
		_, scan := s.Scan(ctx, "", 0, nil)
		_, far := s.Scan(ctx, long, 1, nil)
		_, read := s.Read(ctx, "", nil)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		undeclared := s.Execute(ctx, []string{"a"}, func(tx kvpart.Tx) error {
			_ = tx.Put("a", []byte("1"))
			_ = tx.Put("b", []byte("1"))
			return nil
		})
		for name, e := range map[string]struct{ got, want error }{
			"no key":          {read, kvpart.ErrKey},
			"a long key":      {s.Write(ctx, long, nil), kvpart.ErrKey},
			"a long value":    {s.Write(ctx, "k", make([]byte, kvpart.MaxValue+1)), kvpart.ErrValue},
			"no deletion":     {s.Delete(ctx, ""), kvpart.ErrKey},
			"an empty scan":   {scan, kvpart.ErrOptions},
			"a long start":    {far, kvpart.ErrKey},
			"no keys":         {s.Execute(ctx, nil, nothing), kvpart.ErrOptions},
			"a long key of a": {s.Execute(ctx, []string{"a", long}, nothing), kvpart.ErrKey},
			"undeclared":      {undeclared, kvpart.ErrUndeclared},
			"a big put":       {s.Execute(ctx, []string{"a"}, func(tx kvpart.Tx) error { return tx.Put("a", make([]byte, kvpart.MaxValue+1)) }), kvpart.ErrValue},
			"too late":        {s.Write(ended, "k", nil), context.Canceled},
		} {
			if !errors.Is(e.got, e.want) {
				t.Errorf("%s: %v, want %v", name, e.got, e.want)
			}
		}
		if err := holds(s, nil); err != nil {
			t.Error(err)
		}
		closing(t, s)
		_, scan = s.Scan(ctx, "", 1, nil)
		_, read = s.Read(ctx, "k", nil)
		for _, err := range []error{scan, read, s.Write(ctx, "k", nil), s.Delete(ctx, "k"), s.Execute(ctx, []string{"a"}, nothing)} {
			if !errors.Is(err, kvpart.ErrClosed) {
				t.Errorf("of a closed store: %v", err)
			}
		}
		if err := s.Close(); err != nil {
			t.Errorf("closing again: %v", err)
		}
	})
}

// TestStart hands requests over.
func TestStart(t *testing.T) {
	each(t, func(t *testing.T, c combination) {
		t.Helper()
		s := open(t, c.options(t))
		defer closing(t, s)
		done := make(chan *kvpart.Request, 8)
		start := func(r kvpart.Request) error {
			r.Done = func(r *kvpart.Request) { done <- r }
			return s.Start(t.Context(), &r)
		}
		if c.strategy != kvpart.Threaded && c.strategy != kvpart.HardThreaded {
			if err := start(kvpart.Request{Kind: kvpart.ReadRequest, Key: "k"}); !errors.Is(err, kvpart.ErrOptions) {
				t.Errorf("start without workers: %v", err)
			}
			return
		}
		for _, r := range []kvpart.Request{{}, {Kind: kvpart.ReadRequest}, {Kind: kvpart.ScanRequest}, {Kind: kvpart.WriteRequest, Key: "k", Value: make([]byte, kvpart.MaxValue+1)}} {
			if err := start(r); err == nil {
				t.Errorf("%v of %q was started", r.Kind, r.Key)
			}
		}
		get := kvpart.Request{Kind: kvpart.ReadRequest, Key: "k"}
		for _, r := range []kvpart.Request{
			get,
			{Kind: kvpart.DeleteRequest, Key: "k"},
			{Kind: kvpart.WriteRequest, Key: "k", Value: []byte("1")},
			get,
			{Kind: kvpart.DeleteRequest, Key: "k"},
			{Kind: kvpart.WriteRequest, Key: "k", Value: []byte("2")},
			{Kind: kvpart.ScanRequest, Limit: 3},
		} {
			if err := start(r); err != nil {
				t.Fatal(err)
			}
		}
		for i, want := range []struct {
			value string
			err   error
		}{{"", kvpart.ErrNotFound}, {}, {"1", nil}, {"1", nil}, {}, {"2", nil}, {}} {
			r := <-done
			if !errors.Is(r.Err, want.err) || string(r.Value) != want.value {
				t.Errorf("request %d: %q, %v, want %q, %v", i, r.Value, r.Err, want.value, want.err)
			}
			if r.Kind == kvpart.ScanRequest && (len(r.Pairs) != 1 || string(r.Pairs[0].Value) != "2") {
				t.Errorf("scan finds %v", r.Pairs)
			}
		}
	})
}
