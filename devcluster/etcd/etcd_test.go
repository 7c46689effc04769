package etcd_test

import (
	"context"
	"testing"
	"time"

	"github.com/samya-db/samya/devcluster/etcd"
)

// TestCluster kills the leader, pauses the next, and finds the data at the end.
func TestCluster(t *testing.T) {
	if _, err := etcd.Installed(); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := etcd.Start(ctx, etcd.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		for _, m := range c.Members() {
			if m.PID() != 0 {
				t.Errorf("%s still runs", m.Name)
			}
		}
	}()
	if n := len(c.Endpoints()); n != 3 {
		t.Fatalf("%d endpoints, want 3", n)
	}
	if _, err := c.Client().Put(ctx, "key", "value"); err != nil {
		t.Fatal(err)
	}
	first := leader(ctx, t, c)
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	if second := leader(ctx, t, c); second == first {
		t.Errorf("%s was killed and leads", first.Name)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	second := leader(ctx, t, c)
	if err := second.Pause(); err != nil {
		t.Fatal(err)
	}
	if third := leader(ctx, t, c); third == second {
		t.Errorf("%s is paused and leads", second.Name)
	}
	if err := second.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitHealthy(ctx); err != nil {
		t.Fatal(err)
	}
	got, err := c.Client().Get(ctx, "key")
	if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "value" {
		t.Errorf("read %v: %v", got, err)
	}
}

func leader(ctx context.Context, t *testing.T, c *etcd.Cluster) *etcd.Member {
	t.Helper()
	m, err := c.Leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
