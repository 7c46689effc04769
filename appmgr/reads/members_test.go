package reads

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/seats"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestMembersWatched: a watch tells what any site tells of the members, and each member as
// this app manager sees it. It ends with the app manager.
func TestMembersWatched(t *testing.T) {
	const isMember, drains = samyav1.MemberState_MEMBER_STATE_MEMBER, samyav1.MemberState_MEMBER_STATE_DRAINING
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		tells := make(chan *samyav1.WatchMembersResponse, 100)
		take := func() (told []*samyav1.WatchMembersResponse) {
			for len(tells) > 0 {
				told = append(told, <-tells)
			}
			return told
		}
		ended := make(chan error, 1)
		go func() {
			ended <- r.service.TellMembers(t.Context(), func(m *samyav1.WatchMembersResponse) error {
				tells <- m
				return nil
			})
		}()
		fake.Pass(time.Second)
		if told := take(); len(told) != 1 || told[0].GetList().GetAnsweredBy() != "am" || len(told[0].GetList().GetMembers()) != 4 {
			t.Fatalf("at once: %v", told)
		}
		fake.Pass(seats.Alive)
		if told := take(); len(told) != 1 || told[0].GetList() != nil {
			t.Errorf("a sign of life: %v", told)
		}
		// The farthest site alone has heard of the drain.
		r.sites["au"].Seat(3, fake.SeatOf("au", isMember, ""), fake.SeatOf("eu", isMember, ""), fake.SeatOf("us", drains, "eu"))
		fake.Pass(time.Second)
		told := take()
		if len(told) != 1 {
			t.Fatalf("a drain: %v", told)
		}
		us := told[0].GetList().GetMembers()[2]
		if us.GetState() != drains || us.GetHeir() != "eu" || us.GetHealth() != samyav1.SiteHealth_SITE_HEALTH_SERVING {
			t.Errorf("the site that drains: %v", us)
		}
		r.sites["us"].Kill()
		fake.Pass(2 * seats.Alive)
		told = take()
		if len(told) == 0 || told[0].GetList().GetMembers()[2].GetHealth() != samyav1.SiteHealth_SITE_HEALTH_UNREACHABLE {
			t.Errorf("a site that is down: %v", told)
		}
		r.limiter.Close()
		if err := <-ended; !errors.Is(err, apierr.ShuttingDown) {
			t.Errorf("the watch ends with %v", err)
		}
	})
}

// TestMembersBeforeAnyWord: an app manager that no site has told anything asks, and a watch
// fails if nobody answers.
func TestMembersBeforeAnyWord(t *testing.T) {
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		t := r.t
		r.sites["us"].Kill()
		fake.Pass(5 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		lists := 0
		count := func(m *samyav1.WatchMembersResponse) error {
			if m.GetList() != nil {
				lists++
			}
			return nil
		}
		// What was told before outlasts the sites.
		if err := r.service.TellMembers(ctx, count); apierr.ReasonOf(err) != apierr.Canceled || lists != 1 {
			t.Errorf("%d lists, %v", lists, err)
		}
	})
	inBubble(t, nil, nil, func(r *rig) {
		if err := r.service.TellMembers(r.t.Context(), nil); apierr.ReasonOf(err) != apierr.SiteUnavailable {
			r.t.Errorf("without sites: %v", err)
		}
	})
}

// TestListOfADrain: what a site that drains still holds is the site's own word, and another
// site's as long as it is silent.
func TestListOfADrain(t *testing.T) {
	const isMember, drains = samyav1.MemberState_MEMBER_STATE_MEMBER, samyav1.MemberState_MEMBER_STATE_DRAINING
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		seat := func(site, waits string, drain *samyav1.Drain) {
			eu := fake.SeatOf("eu", drains, "us")
			eu.Knows, eu.WaitsFor, eu.Drain = drain != nil, waits, drain
			r.sites[site].Seat(3, fake.SeatOf("au", isMember, ""), eu, fake.SeatOf("us", isMember, ""))
		}
		for _, site := range []string{"au", "us"} {
			seat(site, "the site to hear that it drains", nil)
		}
		eu := func() *samyav1.Member {
			out, err := r.service.ListMembers(t.Context(), &samyav1.ListMembersRequest{})
			if err != nil || out.GetAnsweredBy() != "site/us" || out.GetMembers()[1].GetName() != "eu" {
				t.Fatalf("%v, %v", out, err)
			}
			return out.GetMembers()[1]
		}
		seat("eu", "3 entities to be handed over to us", &samyav1.Drain{Entities: 3})
		if m := eu(); m.GetDrain().GetEntities() != 3 || !m.GetKnows() || m.GetWaitsFor() != "3 entities to be handed over to us" || m.GetHealth() != samyav1.SiteHealth_SITE_HEALTH_SERVING {
			t.Errorf("a site that tells: %v", m)
		}
		r.sites["eu"].Seat(2, fake.SeatOf("au", isMember, ""), fake.SeatOf("eu", isMember, ""), fake.SeatOf("us", isMember, ""))
		if m := eu(); m.GetDrain() != nil || m.GetKnows() {
			t.Errorf("a site that does not know of it: %v", m)
		}
		r.sites["eu"].Kill()
		fake.Pass(0)
		if m := eu(); m.GetDrain() != nil || m.GetWaitsFor() != "the site to hear that it drains" {
			t.Errorf("a silent site: %v", m)
		}
	})
}
