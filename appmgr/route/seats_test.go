package route

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/health"
	"github.com/samya-db/samya/internal/seats"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

const (
	seatMember   = samyav1.MemberState_MEMBER_STATE_MEMBER
	seatDraining = samyav1.MemberState_MEMBER_STATE_DRAINING
	seatGone     = samyav1.MemberState_MEMBER_STATE_GONE
	seatLost     = samyav1.MemberState_MEMBER_STATE_LOST
)

// seat has all sites tell the three seats, of which us has the state and the heir.
func (r *rig) seat(version uint64, us samyav1.MemberState, heir string) {
	fake.SeatAll(r.sites, version, fake.SeatOf("au", seatMember, ""), fake.SeatOf("eu", seatMember, ""), fake.SeatOf("us", us, heir))
	fake.Pass(2 * time.Second)
}

// release makes a release, of a lease if it is not empty, and returns the site that
// answered.
func (r *rig) release(lease, first string) (string, error) {
	in := &samyav1.ReleaseRequest{Entity: "acme/vm", Tokens: 1, RequestId: "id-1", Lease: lease}
	c := Call{First: first, RequestID: "id-1", Entity: "acme/vm", Moves: r.router.Movement(in, 0), Until: time.Now().Add(10 * time.Second)}
	c.Moves.Operation = fake.ReleaseOf(in)
	err := r.router.Do(r.t.Context(), c)
	return c.Moves.Result.GetRelease().GetSite(), err
}

// renew renews a lease, and returns the error.
func (r *rig) renew(lease string) error {
	home, _, _ := strings.Cut(lease, "/")
	return r.router.Do(r.t.Context(), Call{
		Method: samyav1.TokenService_RenewLease_FullMethodName, Site: home, By: ofLease, Changes: &Change{},
		Req: &samyav1.RenewLeaseRequest{Lease: lease}, Resp: &samyav1.RenewLeaseResponse{},
	})
}

// renewals has all sites answer renewals as their entry of moved says: a site with an heir
// has handed its leases over. It returns the sites that were asked, in order.
func (r *rig) renewals(moved map[string]string) *[]string {
	asked := &[]string{}
	for name, f := range r.sites {
		f.OnRenew = func(in *samyav1.RenewLeaseRequest) (*samyav1.RenewLeaseResponse, error) {
			*asked = append(*asked, name)
			heir, has := moved[name]
			if !has {
				return &samyav1.RenewLeaseResponse{Lease: &samyav1.Lease{Name: in.GetLease()}}, nil
			}
			return nil, &apierr.Error{Reason: apierr.LeaseMoved, Message: "moved", Site: heir}
		}
	}
	return asked
}

// TestDrainingSites: a site that drains gets no acquires of any kind, and other calls only
// if they are for it or nobody else is there.
func TestDrainingSites(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t, us := r.t, r.sites["us"]
		r.seat(3, seatDraining, "eu")
		if site, err := r.acquire(t, fake.Take); site != "eu" || err != nil {
			t.Errorf("an acquire: %s, %v", site, err)
		}
		all := Call{Moves: r.router.Movement(fake.TwoOf("id"), 0)}
		all.Moves.Batch = fake.TwoOf("id")
		for _, op := range all.Moves.Batch.GetOperations() {
			op.GetAcquire().Relay = 1
		}
		if err := r.router.Do(t.Context(), all); err != nil || all.Moves.Granted.GetSite() != "eu" {
			t.Errorf("an atomic batch: %v, %v", all.Moves.Granted, err)
		}
		dry := Call{Method: samyav1.TokenService_Acquire_FullMethodName, Read: true, Req: &samyav1.AcquireRequest{DryRun: true}, Resp: &samyav1.AcquireResponse{}}
		if err := r.router.Do(t.Context(), dry); err != nil || dry.Resp.(*samyav1.AcquireResponse).GetSite() != "eu" {
			t.Errorf("a dry run: %v, %v", dry.Resp, err)
		}
		if n := us.Calls.Load(); n != 0 {
			t.Errorf("%d acquires reached the site that drains", n)
		}
		if site, err := r.release("", ""); site != "eu" || err != nil {
			t.Errorf("a release: %s, %v", site, err)
		}
		if site, err := r.release("us/x", "us"); site != "us" || err != nil {
			t.Errorf("a release of its lease: %s, %v", site, err)
		}
		if site, err := r.acquire(t, &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 3, RequestId: "id-1", Site: "us"}); site != "us" || err != nil {
			t.Errorf("a repeat at the site: %s, %v", site, err)
		}
		r.sites["eu"].Kill()
		r.sites["au"].Kill()
		fake.Pass(5 * time.Second)
		before := us.Calls.Load()
		if _, err := r.acquire(t, fake.Take); apierr.ReasonOf(err) != apierr.SiteUnavailable || us.Calls.Load() != before {
			t.Errorf("an acquire with no other site: %v", err)
		}
		if site, err := r.release("", ""); site != "us" || err != nil {
			t.Errorf("a release with no other site: %s, %v", site, err)
		}
		us.Seat(4, fake.SeatOf("au", seatMember, ""), fake.SeatOf("eu", seatMember, ""), fake.SeatOf("us", seatMember, ""))
		fake.Pass(time.Second)
		if site, err := r.acquire(t, fake.Take); site != "us" || err != nil {
			t.Errorf("an acquire after the end of the drain: %s, %v", site, err)
		}
	})
}

// TestDrainingByItsWord: a site that says that it drains is no worse a site for that. It
// gets no acquires for a while, in case that its word is old.
func TestDrainingByItsWord(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t, us := r.t, r.sites["us"]
		us.Refuse(apierr.New(apierr.SiteDraining, "it drains"))
		for range 3 {
			if site, err := r.acquire(t, fake.Take); site != "eu" || err != nil {
				t.Fatalf("%s answered, %v", site, err)
			}
		}
		if n, h := us.Calls.Load(), r.router.link("us").state(); n != 1 || h.Reach != health.Up || h.Overloaded(time.Now()) {
			t.Errorf("%d acquires reached the site, which is %+v", n, h)
		}
		us.OnAcquire = nil
		fake.Pass(drainTime)
		if site, err := r.acquire(t, fake.Take); site != "us" || err != nil {
			t.Errorf("later %s answered, %v", site, err)
		}
	})
}

// TestSitesThatAreOut: nothing is sent to a site that has left or was written off, and what
// is under way there ends by itself. Its heir answers for a site that has left.
func TestSitesThatAreOut(t *testing.T) {
	for state, heir := range map[samyav1.MemberState]string{seatGone: "au", seatLost: ""} {
		inBubble(t, fake.ThreeSites, nil, func(r *rig) {
			t, us := r.t, r.sites["us"]
			us.OnAcquire = func(context.Context, *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
				fake.Pass(5 * time.Second)
				return &samyav1.AcquireResponse{Site: "us"}, nil
			}
			ended := make(chan error, 1)
			go func() {
				site, err := r.acquire(t, fake.Take)
				if err == nil && site != "us" {
					err = errors.New("answered by " + site)
				}
				ended <- err
			}()
			fake.Pass(time.Second)
			r.seat(3, state, heir)
			if r.router.link("us") != nil {
				t.Errorf("%v: the router keeps its link", state)
			}
			if site, err := r.acquire(t, fake.Take); site != "eu" || err != nil {
				t.Errorf("%v: an acquire: %s, %v", state, site, err)
			}
			if err := <-ended; err != nil {
				t.Errorf("%v: the acquire that was under way: %v", state, err)
			}
			calls := us.Calls.Load()
			asked := r.renewals(nil)
			site, err := r.acquire(t, &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 3, RequestId: "id-1", Site: "us"})
			again := r.renew("us/x")
			freed, freeErr := r.release("us/x", "us")
			switch state {
			case seatGone:
				if site != "au" || err != nil || again != nil || !slices.Equal(*asked, []string{"au"}) || freed != "au" || freeErr != nil {
					t.Errorf("for the site that left: %s, %v; a renewal %v at %v; a release %s, %v", site, err, again, *asked, freed, freeErr)
				}
			default:
				if apierr.ReasonOf(err) != apierr.SiteUnavailable || apierr.ReasonOf(again) != apierr.LeaseNotFound || len(*asked) != 0 || freed != "eu" || freeErr != nil {
					t.Errorf("for the site that is lost: %v; a renewal %v at %v; a release %s, %v", err, again, *asked, freed, freeErr)
				}
			}
			if n := us.Calls.Load(); n != calls {
				t.Errorf("%v: %d acquires reached it afterwards", state, n-calls)
			}
		})
	}
}

// TestLeasesMove: a request about a lease goes to the lease's home first, and on to the
// heirs as the sites tell of them, no further than heirs go. Callers hear nothing of it.
func TestLeasesMove(t *testing.T) {
	for what, test := range map[string]struct {
		moved map[string]string
		asked []string
		want  apierr.Reason
	}{
		"the home has it":         {nil, []string{"us"}, ""},
		"the home names the heir": {map[string]string{"us": "au"}, []string{"us", "au"}, ""},
		"the seats name the heir": {map[string]string{"us": ""}, []string{"us", "eu"}, ""},
		"an heir leaves as well":  {map[string]string{"us": "au", "au": "eu"}, []string{"us", "au", "eu"}, ""},
		"nobody has it":           {map[string]string{"us": "eu", "eu": ""}, []string{"us", "eu"}, apierr.SiteUnavailable},
		"it names itself":         {map[string]string{"us": "us"}, []string{"us"}, apierr.SiteUnavailable},
	} {
		inBubble(t, fake.ThreeSites, nil, func(r *rig) {
			r.seat(3, seatDraining, "eu")
			asked := r.renewals(test.moved)
			err := r.renew("us/x")
			if apierr.ReasonOf(err) != test.want || !slices.Equal(*asked, test.asked) {
				r.t.Errorf("%s: %v after %v, want %q after %v", what, err, *asked, test.want, test.asked)
			}
		})
	}
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		// Sites with an old word send each other's callers around.
		asked := r.renewals(map[string]string{"us": "eu", "eu": "us"})
		if err := r.renew("us/x"); apierr.ReasonOf(err) != apierr.SiteUnavailable || len(*asked) > 200 {
			r.t.Errorf("a ring: %v after %d renewals", err, len(*asked))
		}
	})
}

// TestReleasesOfMovedLeases: a release goes from the home to the heir, and if the heir is
// away to any site, which parks it.
func TestReleasesOfMovedLeases(t *testing.T) {
	for _, heirUp := range []bool{true, false} {
		inBubble(t, fake.ThreeSites, nil, func(r *rig) {
			us, asked := r.sites["us"], 0
			us.OnRelease = func(context.Context, *samyav1.ReleaseRequest) (*samyav1.ReleaseResponse, error) {
				asked++
				return nil, &apierr.Error{Reason: apierr.LeaseMoved, Message: "moved", Site: "au"}
			}
			r.seat(3, seatDraining, "au")
			want := "au"
			if !heirUp {
				r.sites["au"].Kill()
				fake.Pass(5 * time.Second)
				want = "eu"
			}
			if site, err := r.release("us/x", "us"); site != want || err != nil || asked != 1 {
				r.t.Errorf("the heir is up, %t: %s answered, %v, after %d tries at the home", heirUp, site, err, asked)
			}
			if !heirUp {
				r.sites["eu"].Kill()
				fake.Pass(5 * time.Second)
				if _, err := r.release("us/x", "us"); apierr.ReasonOf(err) != apierr.SiteUnavailable {
					r.t.Errorf("nobody but the home: %v", err)
				}
			}
		})
	}
}

// TestSitesThatLag: the word of a site that was cut off takes back nothing. Builds without
// the watch are asked for lists.
func TestSitesThatLag(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		r.sites["us"].Listing, r.sites["au"].Listing = true, true
		r.sites["eu"].Listing = true
		r.sites["au"].Seat(4, fake.SeatOf("au", seatMember, ""), fake.SeatOf("eu", seatMember, ""), fake.SeatOf("us", seatLost, ""))
		fake.Pass(2 * membersInterval)
		for range 3 {
			r.sites["eu"].Seat(3, fake.SeatOf("au", seatMember, ""), fake.SeatOf("eu", seatMember, ""), fake.SeatOf("us", seatMember, ""))
			fake.Pass(membersInterval)
			if site, err := r.acquire(r.t, fake.Take); site != "eu" || err != nil || r.router.link("us") != nil {
				r.t.Errorf("%s answered, %v", site, err)
			}
		}
	})
}

// TestMembersFollowTheSeats: a list with another version has the member set fetched at
// once.
func TestMembersFollowTheSeats(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		fake.Pass(membersInterval)
		for _, f := range r.sites {
			f.Tell([]string{"us", "eu"}, 9)
		}
		r.seat(9, seatMember, "")
		if ms := r.router.memberSet(); ms.Version != 9 || len(ms.Sites) != 2 {
			r.t.Errorf("the members are %v", ms)
		}
	})
}

// TestSilentWatch: a watch that tells nothing, not even a sign of life, is begun anew.
func TestSilentWatch(t *testing.T) {
	inBubble(t, []string{"us", "eu"}, nil, func(r *rig) {
		for _, f := range r.sites {
			f.Mute = true
			f.Kill()
			f.Up()
		}
		fake.Pass(10 * time.Second)
		fake.SeatAll(r.sites, 3, fake.SeatOf("eu", seatMember, ""), fake.SeatOf("us", seatDraining, "eu"))
		fake.Pass(seats.Silence + 10*time.Second)
		if site, err := r.acquire(r.t, fake.Take); site != "eu" || err != nil {
			r.t.Errorf("%s answered, %v", site, err)
		}
	})
}
