package reads

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/shares"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestNewest: a read tells the entity of the highest generation, then of the highest
// version, then of the site that has applied most. The order of the answers does not
// matter.
func TestNewest(t *testing.T) {
	of := func(site string, generation, version, applied uint64) reply {
		r := told(site, fake.Ent(int64(100*generation+10*version)+int64(applied), generation, version), 1, 1)
		r.resp.Usage.Shares[0].Moves = &samyav1.Moves{Applied: applied}
		return r
	}
	for what, pair := range map[string][2][3]uint64{
		"a later generation":   {{2, 1, 1}, {1, 9, 9}},
		"a later version":      {{1, 3, 1}, {1, 2, 9}},
		"more has applied":     {{1, 1, 5}, {1, 1, 4}},
		"a later one by a lot": {{7, 1, 1}, {1, 1, 1}},
	} {
		later, earlier := pair[0], pair[1]
		a, b := of("as", later[0], later[1], later[2]), of("us", earlier[0], earlier[1], earlier[2])
		silent := failed("eu", apierr.SiteUnavailable)
		for _, all := range [][]reply{{a, b, silent}, {b, a, silent}, {silent, b, a}} {
			if got, err := newest("e", all); err != nil || got.site != "as" {
				t.Errorf("%s: %v, %v", what, got, err)
			}
		}
	}
}

// TestMergeKeepsCounts: counts that only the site itself tells are kept when other sites
// have heard of its books since.
func TestMergeKeepsCounts(t *testing.T) {
	old := seenAt(3*time.Second, 1, 30, 5)
	old.share.Redistributions, old.share.Transfers = 4, 6
	replies := []reply{heard(told("as", fake.Ent(100, 1, 1), 40, 10), "us", 2*time.Second, 25, 15), failed("us", apierr.SiteUnavailable)}
	got, keep, err := merge("e", replies, map[string]figure{"us": old}, now)
	if err != nil {
		t.Fatal(err)
	}
	us := got.GetUsage().GetShares()[1]
	if us.GetLeft() != 25 || us.GetRedistributions() != 4 || us.GetTransfers() != 6 || keep["us"].share.GetTransfers() != 6 {
		t.Errorf("told %v, kept %v", us, keep["us"].share)
	}
}

// TestAllOfAReplyIsMerged: each field of a site's share comes to the judge of the cut.
func TestAllOfAReplyIsMerged(t *testing.T) {
	resp := fake.ShareOf("us", fake.Ent(100, 2, 3), 4, 5)
	resp.Usage.Surplus, resp.Usage.WrittenOff = 6, 16
	own := resp.GetUsage().GetShares()[0]
	own.Offered = 7
	own.Moves = &samyav1.Moves{
		Applied: 8, Pledged: true, Owed: 9, Stars: []*samyav1.StarMove{{Leader: "eu", Counter: 10, Applied: true}},
		Sent:     []*samyav1.TransferMove{{Site: "eu", Seq: 11, Tokens: 12}},
		Received: []*samyav1.TransferMove{{Site: "au", Seq: 13, Tokens: 14}},
		Handed:   []*samyav1.TransferMove{{Site: "eu", Seq: 17, Tokens: 1}}, Inherited: []*samyav1.TransferMove{{Site: "au", Seq: 18}},
	}
	r := reply{site: "us", resp: resp, round: 15}
	want := shares.Share{
		Site: "us", Round: 15, Generation: 2, Limit: 100, Surplus: 6, WrittenOff: 16, Applied: 8, Owed: 9, Pledged: true, Left: 4, Offered: 7, Net: 5,
		Stars:    []shares.Star{{Leader: "eu", Counter: 10, Applied: true}},
		Sent:     []shares.Transfer{{Site: "eu", Seq: 11, Tokens: 12}},
		Received: []shares.Transfer{{Site: "au", Seq: 13, Tokens: 14}},
		Handed:   []shares.Transfer{{Site: "eu", Seq: 17, Tokens: 1}}, Inherited: []shares.Transfer{{Site: "au", Seq: 18}},
	}
	if got := r.share(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	for i, v := 0, reflect.ValueOf(want); i < v.NumField(); i++ {
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() != (name == "Absent") {
			t.Errorf("the test says nothing of %s", name)
		}
	}
}

// TestBoundedReadTellsTheLatest: for a silent site, a bounded read tells the figure last
// seen or heard, of the present entity.
func TestBoundedReadTellsTheLatest(t *testing.T) {
	for _, c := range []struct {
		what       string
		seen       time.Duration // how long ago; 0: never
		generation uint64
		want       int64
	}{
		{"it was seen before it was heard of", 20 * time.Second, 2, 20},
		{"it was seen since", 5 * time.Second, 2, 30},
		{"it was never seen", 0, 0, 20},
		{"an earlier entity of the name was seen since", 5 * time.Second, 1, 20},
	} {
		inBubble(t, []string{"us", "eu"}, nil, func(r *rig) {
			r.sites["us"].OnGet = tells(func() *samyav1.GetEntityResponse {
				resp := fake.ShareOf("us", fake.Ent(100, 2, 1), 30, 0)
				resp.Usage.Shares = append(resp.Usage.Shares, shown("eu", 10*time.Second, 20, 1))
				return resp
			})
			if c.seen > 0 {
				r.service.seen.put("e", map[string]figure{"eu": {
					share: &samyav1.Share{Site: "eu", Left: 30}, generation: c.generation, seen: time.Now().Add(-c.seen),
				}})
			}
			r.sites["eu"].Kill()
			fake.Pass(0)
			u := r.read(boundedRead, durationpb.New(time.Second))
			if u.GetComplete() || u.GetShares()[1].GetLeft() != c.want {
				r.t.Errorf("%s: %v, want %d", c.what, u, c.want)
			}
		})
	}
}

// TestExactReadOfWhatIsDeleted: if the sites learn of a deletion during the read, the
// entity is not found, whatever the sites told before.
func TestExactReadOfWhatIsDeleted(t *testing.T) {
	inBubble(t, []string{"us", "eu"}, nil, func(r *rig) {
		for n, f := range r.sites {
			asked := 0
			f.OnGet = func(context.Context, *samyav1.GetEntityRequest) (*samyav1.GetEntityResponse, error) {
				if asked++; asked > 1 {
					return nil, apierr.NotFound("e")
				}
				// Together they lack tokens, so that both are asked again.
				return fake.ShareOf(n, fake.Ent(100, 1, 1), 20, 0), nil
			}
		}
		out, err := r.service.GetEntity(r.t.Context(), &samyav1.GetEntityRequest{Name: "e"})
		if !errors.Is(err, apierr.EntityNotFound) {
			r.t.Errorf("%v, %v", out, err)
		}
	})
}
