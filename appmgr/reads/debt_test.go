package reads

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/appmgr/fake"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// owes is the share of a site that has applied instances up to applied. It knows of a
// debt made by the third instance.
func owes(site string, applied uint64, owed, most int64) *samyav1.GetEntityResponse {
	resp := fake.ShareOf(site, fake.Ent(10, 1, 2), 0, 20)
	m := &samyav1.Moves{Applied: applied, Owed: owed}
	if owed > 0 {
		m.OwedSince = 3
	}
	resp.Usage.Shares[0].Moves, resp.Usage.MayExceedBy = m, most
	return resp
}

// wroteOff is a share of an entity with tokens that are written off.
func wroteOff(resp *samyav1.GetEntityResponse) *samyav1.GetEntityResponse {
	resp.Usage.WrittenOff = 7
	return resp
}

// TestMayExceedBy: a read tells the bound of the share that has applied most. It tells 0
// if any site knows that all sites have heard, or if all sites say so themselves.
func TestMayExceedBy(t *testing.T) {
	old := func(site string) *samyav1.GetEntityResponse { return fake.ShareOf(site, fake.Ent(100, 1, 1), 30, 3) }
	for _, c := range []struct {
		what       string
		us, eu, au *samyav1.GetEntityResponse // nil: silent
		most       int64
	}{
		{"one has not heard", owes("us", 3, 50, 50), owes("eu", 3, 50, 50), old("au"), 50},
		{"one has not heard, and a part is paid", owes("us", 4, 40, 40), owes("eu", 3, 50, 50), old("au"), 40},
		{"one is silent", owes("us", 3, 50, 50), owes("eu", 3, 50, 50), nil, 50},
		{"one is silent, and is known to have heard", owes("us", 3, 50, 50), owes("eu", 3, 50, 0), nil, 0},
		{"all tell that they have heard", owes("us", 3, 50, 50), owes("eu", 3, 50, 50), owes("au", 4, 45, 45), 0},
		{"all tell that they have heard, and a lost site has not", wroteOff(owes("us", 3, 50, 50)), wroteOff(owes("eu", 3, 50, 50)), wroteOff(owes("au", 4, 45, 45)), 45},
		{"one knows of nothing later, and that all have heard", owes("us", 3, 50, 0), owes("eu", 3, 50, 50), old("au"), 0},
		{"the debt is paid", owes("us", 5, 0, 0), owes("eu", 3, 50, 50), old("au"), 0},
		{"of an earlier entity all have heard", owes("us", 3, 50, 50), owes("eu", 3, 50, 50), func() *samyav1.GetEntityResponse {
			r := owes("au", 9, 50, 0)
			r.Entity.Generation = 0
			return r
		}(), 50},
		{"of an earlier debt all have heard", owes("us", 3, 50, 50), func() *samyav1.GetEntityResponse {
			r := owes("eu", 2, 60, 0)
			r.Usage.Shares[0].Moves.OwedSince = 2
			return r
		}(), old("au"), 50},
	} {
		inBubble(t, fake.ThreeSites, nil, func(r *rig) {
			for name, resp := range map[string]*samyav1.GetEntityResponse{"us": c.us, "eu": c.eu, "au": c.au} {
				if resp == nil {
					r.sites[name].Kill()
					fake.Pass(5 * time.Second)
					continue
				}
				r.sites[name].OnGet = tells(func() *samyav1.GetEntityResponse { return resp })
			}
			if u := r.read(exactRead, nil); u.GetMayExceedBy() != c.most {
				r.t.Errorf("%s: %v, want %d", c.what, u, c.most)
			}
		})
	}
}

// TestOtherReadsTellDebts: a bounded read tells the debt and MayExceedBy, like an exact
// read. A local read tells both figures of its site.
func TestOtherReadsTellDebts(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		r.sites["us"].OnGet = tells(func() *samyav1.GetEntityResponse {
			resp := owes("us", 3, 50, 50)
			resp.Usage.Available, resp.Usage.Debt = -50, 50
			resp.Usage.Shares = append(resp.Usage.Shares, &samyav1.Share{Site: "eu", Known: true, Net: 40, Age: durationpb.New(time.Second)}, &samyav1.Share{Site: "au"})
			return resp
		})
		r.sites["au"].OnGet = tells(func() *samyav1.GetEntityResponse { return fake.ShareOf("au", fake.Ent(100, 1, 1), 30, 3) })
		u := r.read(boundedRead, nil)
		if u.GetDebt() != 50 || u.GetAvailable() != 30-50 || u.GetMayExceedBy() != 50 || u.GetAcquired() != 63 {
			t.Errorf("bounded: %v", u)
		}
		if u = r.read(localRead, nil); u.GetDebt() != 50 || u.GetMayExceedBy() != 50 {
			t.Errorf("local: %v", u)
		}
		for _, sh := range u.GetShares() {
			if sh.GetMoves() != nil {
				t.Errorf("the caller is told of moves: %v", u)
			}
		}
	})
}
