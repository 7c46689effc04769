package site_test

import (
	"errors"
	"fmt"
	"testing"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/sitetest"
)

// forest is a cluster with entities below others.
type forest struct {
	*sitetest.Cluster
	t *testing.T
}

func (f *forest) create(name, parent string, limit int64) (*samyav1.Entity, error) {
	resp, err := f.Entities("us").CreateEntity(f.t.Context(), &samyav1.CreateEntityRequest{Name: name, Parent: parent, Limit: limit})
	return resp.GetEntity(), err
}

// plant creates entities, each given with its parent, and waits until both sites have
// them.
func (f *forest) plant(limits map[string]int64, pairs ...[2]string) {
	f.t.Helper()
	for _, p := range pairs {
		sitetest.Eventually(f.t, "creation of "+p[0], func() error {
			resp, err := f.Entities("us").CreateEntity(f.t.Context(), &samyav1.CreateEntityRequest{
				Name: p[0], Parent: p[1], Limit: limits[p[0]], RequestId: "plant-" + p[0],
			})
			if err == nil && resp.GetEntity().GetParent() != p[1] {
				return fmt.Errorf("created %v", resp)
			}
			return err
		})
	}
	last := pairs[len(pairs)-1][0]
	sitetest.Eventually(f.t, last+" at eu", func() error {
		_, err := f.Entities("eu").GetEntity(f.t.Context(), &samyav1.GetEntityRequest{Name: last})
		return err
	})
}

func (f *forest) move(name, parent string) (*samyav1.Entity, error) {
	resp, err := f.Entities("us").MoveEntity(f.t.Context(), &samyav1.MoveEntityRequest{Name: name, Parent: parent})
	return resp.GetEntity(), err
}

// acquired are the tokens that are out of entities, over both sites.
func (f *forest) acquired(names ...string) string {
	f.t.Helper()
	text := ""
	for _, n := range names {
		text += fmt.Sprintf("%s:%d ", n, f.Books(n).GetAcquired())
	}
	return text
}

// TestTree: tokens acquired of an entity are out of all its ancestors. A refusal names
// the entity that lacked the tokens, and the catalogue's refusals name the fault.
func TestTree(t *testing.T) {
	f := &forest{sitetest.Start(t, []string{"eu", "us"}, nil), t}
	ctx := t.Context()
	f.plant(map[string]int64{"acme": 100, "acme/team": 40, "acme/team/vm": 1000, "other": 10},
		[2]string{"acme", ""}, [2]string{"acme/team", "acme"}, [2]string{"acme/team/vm", "acme/team"}, [2]string{"other", ""})

	if resp, err := f.Tokens("us").Acquire(ctx, &samyav1.AcquireRequest{Entity: "acme/team/vm", Tokens: 7}); err != nil || resp.GetLeft() != 493 {
		t.Errorf("%v, %v", resp, err)
	}
	for _, release := range []bool{false, true} {
		if release {
			if _, err := f.Tokens("eu").Release(ctx, &samyav1.ReleaseRequest{Entity: "acme/team", Tokens: 2}); err != nil {
				t.Fatal(err)
			}
		}
		want := "acme:7 acme/team:7 acme/team/vm:7 other:0 "
		if release {
			want = "acme:5 acme/team:5 acme/team/vm:7 other:0 "
		}
		if got := f.acquired("acme", "acme/team", "acme/team/vm", "other"); got != want {
			t.Errorf("out of them are %s, want %s", got, want)
		}
	}
	for _, in := range []*samyav1.AcquireRequest{
		{Entity: "acme/team/vm", Tokens: 30, Wait: durationpb.New(0), RequestId: "much"},
		{Entity: "acme/team/vm", Tokens: 30, Wait: durationpb.New(0), RequestId: "much"},
		{Entity: "acme/team/vm", Tokens: 35, DryRun: true},
	} {
		_, err := f.Tokens("us").Acquire(ctx, in)
		if e := apierr.FromGRPC(err); e == nil || e.Reason != apierr.OutOfTokens || e.Entity != in.GetEntity() || e.Lacking != "acme/team" {
			t.Errorf("%v: %+v", in, e)
		}
	}
	_, err := f.Tokens("us").Acquire(ctx, &samyav1.AcquireRequest{Entity: "other", Tokens: 9, Wait: durationpb.New(0)})
	if e := apierr.FromGRPC(err); e == nil || e.Reason != apierr.OutOfTokens || e.Lacking != "" {
		t.Errorf("an entity that lacks tokens itself: %+v", e)
	}
	for _, in := range []*samyav1.AcquireRequest{
		{Entity: "acme/team/vm", Tokens: 41, RequestId: "excess"},
		{Entity: "acme/team/vm", Tokens: 41, RequestId: "excess"},
		{Entity: "acme/team/vm", Tokens: 5000, MinTokens: 41},
		{Entity: "acme/team/vm", Tokens: 41, DryRun: true},
	} {
		_, err := f.Tokens("us").Acquire(ctx, in)
		if e := apierr.FromGRPC(err); e == nil || e.Reason != apierr.ExceedsLimit || e.Entity != in.GetEntity() || e.Lacking != "acme/team" ||
			e.Limit == nil || *e.Limit != 40 {
			t.Errorf("%v: %+v", in, e)
		}
	}

	for title, c := range map[string]struct {
		call   func() error
		reason apierr.Reason
		entity string
	}{
		"create below none":        {func() error { _, err := f.create("a", "none", 1); return err }, apierr.ParentNotFound, "none"},
		"create below itself":      {func() error { _, err := f.create("a", "a", 1); return err }, apierr.ParentNotFound, "a"},
		"move below none":          {func() error { _, err := f.move("other", "none"); return err }, apierr.ParentNotFound, "none"},
		"move none":                {func() error { _, err := f.move("none", "acme"); return err }, apierr.EntityNotFound, "none"},
		"move below itself":        {func() error { _, err := f.move("acme", "acme"); return err }, apierr.InvalidField, "parent"},
		"move below what is below": {func() error { _, err := f.move("acme", "acme/team/vm"); return err }, apierr.InvalidField, "parent"},
		"delete what has children": {func() error {
			_, err := f.Entities("us").DeleteEntity(ctx, &samyav1.DeleteEntityRequest{Name: "acme"})
			return err
		}, apierr.HasChildren, "acme"},
		"move another generation": {func() error {
			_, err := f.Entities("us").MoveEntity(ctx, &samyav1.MoveEntityRequest{Name: "other", Parent: "acme", ExpectedGeneration: 99})
			return err
		}, apierr.VersionMismatch, "other"},
		"create below a bad name": {func() error { _, err := f.create("a", "b/", 1); return err }, apierr.InvalidField, "parent"},
		"move to a bad name":      {func() error { _, err := f.move("a", "b/"); return err }, apierr.InvalidField, "parent"},
	} {
		e := apierr.FromGRPC(c.call())
		if e == nil || e.Reason != c.reason {
			t.Errorf("%s: %v", title, e)
			continue
		}
		at := e.Entity
		if c.reason == apierr.InvalidField {
			at = e.Violations[0].Field
		}
		if at != c.entity {
			t.Errorf("%s: it is about %q, want %q: %v", title, at, c.entity, e)
		}
	}
}

// TestTreeChanges: depth is bounded, a move takes along the tokens out, and the deletion
// of a subtree takes them from its ancestors.
func TestTreeChanges(t *testing.T) {
	f := &forest{sitetest.Start(t, []string{"eu", "us"}, nil), t}
	ctx := t.Context()
	limits := map[string]int64{"other": 50}
	var chain [][2]string
	parent := ""
	for i := range 8 {
		name := fmt.Sprintf("e%d", i+1)
		limits[name] = 100
		chain = append(chain, [2]string{name, parent})
		parent = name
	}
	f.plant(limits, append(chain, [2]string{"other", ""})...)
	for _, err := range []error{
		func() error { _, err := f.create("e9", "e8", 1); return err }(),
		func() error { _, err := f.move("other", "e8"); return err }(),
	} {
		if e := apierr.FromGRPC(err); e == nil || e.Reason != apierr.InvalidField || e.Violations[0].Field != "parent" {
			t.Errorf("a ninth level: %v", err)
		}
	}
	if _, err := f.Tokens("us").Acquire(ctx, &samyav1.AcquireRequest{Entity: "e8", Tokens: 5}); err != nil {
		t.Fatal(err)
	}
	e, err := f.move("e7", "other")
	if err != nil || e.GetParent() != "other" || e.GetChildren() != 1 || e.GetLimit() != 100 || e.GetVersion() != 1 {
		t.Fatalf("%v, %v", e, err)
	}
	if got, want := f.acquired("e1", "e6", "e7", "e8", "other"), "e1:0 e6:0 e7:5 e8:5 other:5 "; got != want {
		t.Errorf("after the move %s, want %s", got, want)
	}
	list, err := f.Entities("us").ListEntities(ctx, &samyav1.ListEntitiesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]string{}
	for _, e := range list.GetEntities() {
		told[e.GetName()] = fmt.Sprint(e.GetParent(), " ", e.GetChildren())
	}
	if told["e7"] != "other 1" || told["e6"] != "e5 0" || told["other"] != " 1" {
		t.Errorf("parents and children: %v", told)
	}
	if _, err := f.Entities("us").DeleteEntity(ctx, &samyav1.DeleteEntityRequest{Name: "e7", Subtree: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Entities("us").GetEntity(ctx, &samyav1.GetEntityRequest{Name: "e8"}); !errors.Is(apierr.FromGRPC(err), apierr.EntityNotFound) {
		t.Errorf("what stood below: %v", err)
	}
	if resp, err := f.Entities("us").GetEntity(ctx, &samyav1.GetEntityRequest{Name: "other"}); err != nil || resp.GetUsage().GetAcquired() != 0 || resp.GetEntity().GetChildren() != 0 {
		t.Errorf("%v, %v", resp, err)
	}
}
