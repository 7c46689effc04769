package reads

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

const (
	localRead   = samyav1.Consistency_CONSISTENCY_LOCAL
	boundedRead = samyav1.Consistency_CONSISTENCY_BOUNDED
	exactRead   = samyav1.Consistency_CONSISTENCY_EXACT
)

func (r *rig) read(how samyav1.Consistency, age *durationpb.Duration) *samyav1.Usage {
	r.t.Helper()
	out, err := r.service.GetEntity(r.t.Context(), &samyav1.GetEntityRequest{Name: "e", Consistency: how, MaxAge: age})
	if err != nil {
		r.t.Fatal(err)
	}
	return out.GetUsage()
}

// movedShare is a share with its moves.
func movedShare(site string, left int64, sent, received *samyav1.TransferMove) *samyav1.GetEntityResponse {
	resp := fake.ShareOf(site, fake.Ent(100, 1, 1), left, 0)
	m := &samyav1.Moves{}
	if sent != nil {
		m.Sent = append(m.Sent, sent)
	}
	if received != nil {
		m.Received = append(m.Received, received)
	}
	resp.Usage.Shares[0].Moves = m
	return resp
}

// TestExactReadAsksWhoLagsAgain: the receiver's share contains a move that the donor's
// share lacks. The read asks the donor alone again, until the shares fit.
func TestExactReadAsksWhoLagsAgain(t *testing.T) {
	inBubble(t, []string{"us", "eu"}, nil, func(r *rig) {
		t := r.t
		asked := map[string]int{}
		r.sites["us"].OnGet = tells(func() *samyav1.GetEntityResponse {
			if asked["us"]++; asked["us"] < 3 {
				return movedShare("us", 50, nil, nil)
			}
			return movedShare("us", 40, &samyav1.TransferMove{Site: "eu", Seq: 1}, nil)
		})
		r.sites["eu"].OnGet = tells(func() *samyav1.GetEntityResponse {
			asked["eu"]++
			return movedShare("eu", 60, nil, &samyav1.TransferMove{Site: "us", Seq: 1})
		})
		u := r.read(exactRead, nil)
		if !u.GetConsistent() || u.GetAvailable() != 100 || u.GetInTransit() != 0 {
			t.Errorf("%v", u)
		}
		if asked["us"] != 3 || asked["eu"] != 1 {
			t.Errorf("asked %v", asked)
		}
		if u.GetShares()[0].GetMoves() != nil {
			t.Errorf("the caller is told of moves: %v", u)
		}
	})
}

// TestExactReadEndsHonestly: a read tells shares that never fit as not consistent, in
// time for the caller.
func TestExactReadEndsHonestly(t *testing.T) {
	inBubble(t, []string{"us", "eu"}, nil, func(r *rig) {
		t := r.t
		r.sites["us"].OnGet = tells(func() *samyav1.GetEntityResponse { return fake.ShareOf("us", fake.Ent(100, 1, 1), 50, 0) })
		r.sites["eu"].OnGet = tells(func() *samyav1.GetEntityResponse { return fake.ShareOf("eu", fake.Ent(100, 1, 1), 60, 0) })
		began := time.Now()
		if u := r.read(exactRead, nil); u.GetConsistent() || !u.GetComplete() || u.GetInTransit() != -10 {
			t.Errorf("%v", u)
		}
		if d := time.Since(began); d > 2*time.Second {
			t.Errorf("it took %v", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		out, err := r.service.GetEntity(ctx, &samyav1.GetEntityRequest{Name: "e"})
		if err != nil || out.GetUsage().GetConsistent() || ctx.Err() != nil {
			t.Errorf("by a deadline: %v, %v, %v", out, err, ctx.Err())
		}
		// A silent site makes the read incomplete, and no cut is claimed.
		r.sites["eu"].Kill()
		fake.Pass(time.Second)
		r.sites["us"].OnGet = tells(func() *samyav1.GetEntityResponse { return fake.ShareOf("us", fake.Ent(100, 1, 1), 40, 0) })
		if u := r.read(exactRead, nil); u.GetConsistent() || u.GetComplete() {
			t.Errorf("%v", u)
		}
	})
}

func TestLocalReadAsksTheNearestAlone(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		for _, n := range []string{"eu", "au"} {
			r.sites[n].OnGet = tells(func() *samyav1.GetEntityResponse {
				t.Errorf("%s is asked", n)
				return nil
			})
		}
		r.sites["us"].OnGet = func(_ context.Context, in *samyav1.GetEntityRequest) (*samyav1.GetEntityResponse, error) {
			if in.GetConsistency() != localRead {
				t.Errorf("asked for %v", in)
			}
			return movedShare("us", 7, nil, nil), nil
		}
		began := time.Now()
		if u := r.read(localRead, nil); u.GetAvailable() != 7 || u.GetComplete() || len(u.GetShares()) != 1 || u.GetShares()[0].GetMoves() != nil {
			t.Errorf("%v", u)
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("it took %v", d)
		}
		// A healthy site further away stands in.
		r.sites["us"].Kill()
		fake.Pass(2 * time.Second)
		r.sites["eu"].OnGet = nil
		if u := r.read(localRead, nil); u.GetShares()[0].GetSite() != "eu" {
			t.Errorf("%v", u)
		}
	})
}

// TestBoundedReadAsksOfWhomTooLittleIsHeard: a bounded read takes the recent figures that
// the nearest site has heard. It asks the sites without a recent figure.
func TestBoundedReadAsksOfWhomTooLittleIsHeard(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		var asked []string
		r.sites["us"].OnGet = func(_ context.Context, in *samyav1.GetEntityRequest) (*samyav1.GetEntityResponse, error) {
			if in.GetConsistency() != boundedRead {
				t.Errorf("asked for %v", in)
			}
			resp := fake.ShareOf("us", fake.Ent(100, 1, 1), 30, 0)
			resp.Usage.Shares = append(resp.Usage.Shares,
				&samyav1.Share{Site: "eu", Known: true, Left: 20, Net: 1, Age: durationpb.New(3 * time.Second)},
				&samyav1.Share{Site: "au"})
			return resp, nil
		}
		for _, n := range []string{"eu", "au"} {
			r.sites[n].OnGet = func(_ context.Context, in *samyav1.GetEntityRequest) (*samyav1.GetEntityResponse, error) {
				asked = append(asked, n)
				if in.GetConsistency() != localRead {
					t.Errorf("asked for %v", in)
				}
				return fake.ShareOf(n, fake.Ent(100, 1, 1), 22, 3), nil
			}
		}
		u := r.read(boundedRead, nil)
		if !slices.Equal(asked, []string{"au"}) || !u.GetComplete() || u.GetConsistent() || u.GetAvailable() != 30+20+22 || u.GetAcquired() != 4 {
			t.Errorf("asked %v: %v", asked, u)
		}
		if age := u.GetShares()[1].GetAge().AsDuration(); age != 3*time.Second {
			t.Errorf("the figure of eu is %v old", age)
		}
		asked = nil
		u = r.read(boundedRead, durationpb.New(time.Second))
		slices.Sort(asked)
		if !slices.Equal(asked, []string{"au", "eu"}) || u.GetShares()[1].GetLeft() != 22 || u.GetShares()[1].GetAge().AsDuration() != 0 {
			t.Errorf("asked %v: %v", asked, u)
		}
		// For a site without a newer figure, the read tells the old figure with its age.
		r.sites["eu"].Kill()
		fake.Pass(10 * time.Second)
		u = r.read(boundedRead, durationpb.New(time.Second))
		if u.GetComplete() || !u.GetShares()[1].GetKnown() || u.GetShares()[1].GetAge().AsDuration() != 3*time.Second {
			t.Errorf("%v", u)
		}
	})
}

func TestReadsAreChecked(t *testing.T) {
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		t := r.t
		for _, in := range []*samyav1.GetEntityRequest{
			{Name: ""},
			{Name: "e", Consistency: 9},
			{Name: "e", Consistency: boundedRead, MaxAge: durationpb.New(time.Hour + 1)},
			{Name: "e", MaxAge: durationpb.New(-1)},
			{Name: "e", MaxAge: &durationpb.Duration{Nanos: -1, Seconds: 1}},
		} {
			if _, err := r.service.GetEntity(t.Context(), in); !errors.Is(err, apierr.InvalidField) {
				t.Errorf("%v: %v", in, err)
			}
		}
	})
}
