package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/seats"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// addresses returns the addresses of a client's targets, in their order.
func (c *Client) addresses() string {
	c.choosing.Lock()
	defer c.choosing.Unlock()
	var all []string
	for _, t := range c.targets {
		all = append(all, t.Address)
	}
	return strings.Join(all, " ")
}

// hearing lets the client hear of what changed.
func hearing(t *testing.T) {
	t.Helper()
	if err := pause(t.Context(), 12*time.Second); err != nil {
		t.Fatal(err)
	}
}

// begins has a client know the targets named alone at first.
func begins(names ...string) func(*Config) {
	return func(c *Config) {
		c.Targets = slices.DeleteFunc(c.Targets, func(t Target) bool { return !slices.Contains(names, t.Address) })
	}
}

// TestNewTargets: a client of sites learns other sites, unless it is told to stay with its
// targets or one of the targets is an app manager.
func TestNewTargets(t *testing.T) {
	for what, test := range map[string]struct {
		tweak func(*Config)
		want  string
	}{
		"of a site":                      {begins("eu"), "eu au us"},
		"of two sites":                   {begins("eu", "us"), "eu us au"},
		"of all":                         {begins("au", "eu", "us"), "au eu us"},
		"of a site alone":                {func(c *Config) { begins("eu")(c); c.FixedTargets = true }, "eu"},
		"of an app manager":              {begins("am"), "am"},
		"of an app manager and a site":   {begins("am", "eu"), "am eu"},
		"with a token that needs secret": {func(c *Config) { begins("eu")(c); c.Token = func(context.Context) (string, error) { return "", nil } }, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			for _, name := range []string{"au", "eu", "us"} {
				w.site(name, near)
			}
			w.manager("am", near, "au", "eu", "us")
			w.seat(1, seat("au", seatMember, ""), seat("eu", seatMember, ""), seat("sa", samyav1.MemberState_MEMBER_STATE_JOINING, ""), seat("us", seatMember, ""))
			if test.want == "" {
				cfg := w.config("eu")
				test.tweak(&cfg)
				if _, err := New(cfg); err == nil {
					t.Errorf("%s: no error", what)
				}
				return
			}
			bubble(t, w, test.tweak, "eu", func(c *Client) {
				hearing(t)
				if got := c.addresses(); got != test.want {
					t.Errorf("%s: the targets are %s, want %s", what, got, test.want)
				}
				w.servers["eu"].set(connectivity.TransientFailure)
				if g, err := c.Acquire(t.Context(), "acme/vm", 1); len(c.addresses()) > 2 && (err != nil || g.Site == "eu") {
					t.Errorf("%s: with eu away %s answers, %v", what, g.Site, err)
				}
				hearing(t)
				if got := c.addresses(); got != test.want {
					t.Errorf("%s: with eu away the targets are %s, want %s", what, got, test.want)
				}
			})
		})
	}
}

// TestSecrets: a token is not sent in clear to an address that a list names.
func TestSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for _, name := range []string{"127.0.0.1:1", "127.0.0.1:2", "10.0.0.1:3"} {
			w.site(name, near)
		}
		list := func() (all []*samyav1.Member) {
			for name := range w.servers {
				all = append(all, &samyav1.Member{Name: name, State: seatMember, Address: name})
			}
			slices.SortFunc(all, func(a, b *samyav1.Member) int { return strings.Compare(a.GetName(), b.GetName()) })
			return all
		}
		w.seat(1, list()...)
		bubble(t, w, func(c *Config) {
			begins("127.0.0.1:1")(c)
			c.Token = func(context.Context) (string, error) { return "secret", nil }
		}, "", func(c *Client) {
			hearing(t)
			if got := c.addresses(); got != "127.0.0.1:1 127.0.0.1:2" {
				t.Errorf("the targets are %s", got)
			}
		})
	})
}

// TestSitesLeave: callers see no error while a site goes from member to draining and gone,
// or is written off, whether the client hears of it by the list or by the site's word.
// Every kind of call goes on, and no acquire goes to the site once the client knows.
func TestSitesLeave(t *testing.T) {
	for what, last := range map[string]samyav1.MemberState{"gone": seatGone, "lost": seatLost} {
		for _, begin := range []string{"eu", "au eu us"} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				au := w.site("au", near)
				w.site("eu", near)
				w.site("us", near)
				w.seat(1, seat("au", seatMember, ""), seat("eu", seatMember, ""), seat("us", seatMember, ""))
				bubble(t, w, begins(strings.Fields(begin)...), "au", func(c *Client) {
					hearing(t)
					var callers sync.WaitGroup
					ctx, over := context.WithCancel(t.Context())
					held := make([]int64, 6)
					for i := range held {
						callers.Go(func() { held[i] = everything(ctx, t, c, i) })
					}
					hearing(t)
					if n, _, _ := au.counts(); n == 0 {
						t.Fatal("the nearest site gets no calls")
					}
					// The site refuses before any list tells why.
					au.answers(func(op *samyav1.Operation) *samyav1.Result {
						if op.GetAcquire() != nil {
							return failed(&apierr.Error{Reason: apierr.SiteDraining, Site: "au"})
						}
						return au.execute(op)
					})
					hearing(t)
					w.seat(2, seat("au", seatDraining, "eu"), seat("eu", seatMember, ""), seat("us", seatMember, ""))
					hearing(t)
					acquires := 0
					au.answers(func(op *samyav1.Operation) *samyav1.Result {
						if op.GetAcquire() != nil {
							acquires++
						}
						return au.execute(op)
					})
					hearing(t)
					if acquires != 0 {
						t.Errorf("%s: %d acquires reached a site that drains", what, acquires)
					}
					if last == seatGone {
						w.seat(2, seat("au", seatGone, "eu"), seat("eu", seatMember, ""), seat("us", seatMember, ""))
					} else {
						au.set(connectivity.TransientFailure)
						w.seat(3, seat("au", seatLost, ""), seat("eu", seatMember, ""), seat("us", seatMember, ""))
					}
					hearing(t)
					before, _, closed := au.counts()
					hearing(t)
					after, _, _ := au.counts()
					if after != before {
						t.Errorf("%s: %d calls reached a site that is out", what, after-before)
					}
					if learned := begin == "eu"; learned != (closed == 1) || learned == strings.Contains(c.addresses(), "au") {
						t.Errorf("%s, from %s: the targets are %s, and %d connections to the site are closed", what, begin, c.addresses(), closed)
					}
					over()
					callers.Wait()
					var all int64
					for _, n := range held {
						all += n
					}
					w.books(t, all)
				})
			})
		}
	}
}

// TestDrainingAlone: an acquire goes to no site that drains, even if no other answers. A
// release does.
func TestDrainingAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		eu := w.site("eu", near)
		us := w.site("us", near)
		w.seat(1, seat("eu", seatDraining, "us"), seat("us", seatMember, ""))
		bubble(t, w, nil, "eu", func(c *Client) {
			hearing(t)
			us.set(connectivity.TransientFailure)
			hearing(t)
			if _, err := c.Acquire(t.Context(), "acme/vm", 1); err == nil || errors.Is(err, ErrOutcomeUnknown) || eu.arrived() != 0 {
				t.Errorf("an acquire: %v, and %d calls reached the site", err, eu.arrived())
			}
			if r, err := c.Release(t.Context(), "acme/vm", 1); err != nil || r.Site != "eu" {
				t.Errorf("a release: %s, %v", r.Site, err)
			}
			w.seat(2, seat("eu", seatMember, ""), seat("us", seatMember, ""))
			hearing(t)
			if g, err := c.Acquire(t.Context(), "acme/vm", 1); err != nil || g.Site != "eu" {
				t.Errorf("an acquire after the end of the drain: %s, %v", g.Site, err)
			}
		})
	})
}

// everything makes calls until ctx ends, and returns the tokens held. No call may fail.
func everything(ctx context.Context, t *testing.T, c *Client, kind int) (held int64) {
	t.Helper()
	for pause(ctx, 100*time.Millisecond) == nil {
		var err error
		switch kind {
		case 0:
			_, err = c.Acquire(t.Context(), "acme/vm", 2)
			held += 2
		case 1:
			_, err = c.Release(t.Context(), "acme/vm", 1)
			held--
		case 2:
			var rs []Result
			rs, err = c.Batch(t.Context(), AcquireOp("acme/vm", 3), ReleaseOp("acme/vm", 1))
			for _, r := range rs {
				err = errors.Join(err, r.Err)
			}
			held += 2
		case 3:
			_, err = c.AcquireAll(t.Context(), []Part{{Entity: "acme/vm", Tokens: 1}})
			held++
		case 4:
			_, err = c.LeaseNamed("eu/x", "acme/vm").Renew(t.Context(), time.Minute)
		case 5:
			_, _, err = c.LeaseNamed("eu/x", "acme/vm").Commit(t.Context(), 1)
		}
		if err != nil {
			t.Errorf("kind %d: %v", kind, err)
			return held
		}
	}
	return held
}

// TestCallsUnderWay: a site that has left answers what is under way there, and the client
// closes its connection afterwards.
func TestCallsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.site("eu", far)
		us := w.site("us", near)
		members := func(state samyav1.MemberState) []*samyav1.Member {
			return []*samyav1.Member{seat("eu", seatMember, ""), seat("us", state, "")}
		}
		w.seat(1, members(seatMember)...)
		bubble(t, w, begins("eu"), "us", func(c *Client) {
			hearing(t)
			us.answers(func(op *samyav1.Operation) *samyav1.Result {
				_ = pause(context.Background(), time.Second)
				return us.execute(op)
			})
			answered := make(chan string)
			go func() {
				g, err := c.Acquire(t.Context(), "acme/vm", 1)
				answered <- fmt.Sprint(g.Site, err)
			}()
			_ = pause(t.Context(), 500*time.Millisecond)
			w.seat(2, members(seatGone)...)
			_ = pause(t.Context(), 200*time.Millisecond)
			if _, _, closed := us.counts(); closed != 0 || c.addresses() != "eu" {
				t.Errorf("with a call under way %d connections are closed, and the targets are %s", closed, c.addresses())
			}
			if got := <-answered; got != "us<nil>" {
				t.Errorf("the call under way: %s", got)
			}
			hearing(t)
			if _, _, closed := us.counts(); closed != 1 {
				t.Errorf("%d connections are closed afterwards", closed)
			}
			w.books(t, 1)
		})
	})
}

// TestLeasesOfSitesThatLeave: requests about a lease go to its home as long as that has the
// lease, and then to the heirs. The lease of a site that was written off has ended.
func TestLeasesOfSitesThatLeave(t *testing.T) {
	moved := func(heir string) func(string) error {
		return func(string) error {
			return apierr.From(&apierr.Error{Reason: apierr.LeaseMoved, Site: heir}).GRPCStatus().Err()
		}
	}
	for what, test := range map[string]struct {
		au, eu func(string) error // how they answer
		state  samyav1.MemberState
		heir   string
		fixed  bool
		asked  string
		want   error
	}{
		"a member":                     {nil, nil, seatMember, "", false, "au", nil},
		"it drains and has the lease":  {nil, nil, seatDraining, "eu", false, "au", nil},
		"it names the heir":            {moved("eu"), nil, seatDraining, "us", false, "au eu", nil},
		"the list names the heir":      {moved(""), nil, seatDraining, "eu", false, "au eu", nil},
		"the heir leaves as well":      {moved("eu"), moved("us"), seatDraining, "eu", false, "au eu us", nil},
		"it is gone":                   {nil, nil, seatGone, "eu", false, "eu", nil},
		"it is lost":                   {nil, nil, seatLost, "", false, "", ErrLeaseNotFound},
		"nobody has heard of it":       {moved("eu"), nil, seatMember, "", true, "au eu", nil},
		"it has moved to nobody known": {moved(""), nil, seatMember, "", true, "au", ErrUnavailable},
	} {
		for _, commit := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				var asked []string
				for name, answer := range map[string]func(string) error{"au": test.au, "eu": test.eu, "us": nil} {
					w.site(name, near).holds(func(lease string) error {
						if !slices.Contains(asked, name) {
							asked = append(asked, name)
						}
						if answer != nil {
							return answer(lease)
						}
						return nil
					})
				}
				w.seat(2, seat("au", test.state, test.heir), seat("eu", seatMember, ""), seat("us", seatMember, ""))
				bubble(t, w, func(c *Config) { c.FixedTargets = test.fixed }, "us", func(c *Client) {
					hearing(t)
					var err error
					l := c.LeaseNamed("au/x", "acme/vm")
					if commit {
						_, _, err = l.Commit(t.Context(), 1)
					} else {
						_, err = l.Renew(t.Context(), time.Minute)
					}
					if got := strings.Join(asked, " "); got != test.asked || !errors.Is(err, test.want) {
						t.Errorf("%s, commit %t: %v after %s; want %v after %s", what, commit, err, got, test.want, test.asked)
					}
				})
			})
		}
	}
}

// TestLeaseWhileItsHomeIsDown: a target that has not told its name yet, as a site that has
// just joined, may be asked for a lease of another site. Its refusal settles nothing.
func TestLeaseWhileItsHomeIsDown(t *testing.T) {
	for what, known := range map[string][]string{"learned": {"au"}, "of the configuration": {"au", "eu"}} {
		for _, commit := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				au, eu := w.site("au", near), w.site("eu", near)
				foreign := 0
				eu.nameless = true
				eu.holds(func(string) error {
					foreign++
					return apierr.Invalid("lease", "is one of site au, this is site eu").GRPCStatus().Err()
				})
				w.seat(2, seat("au", seatMember, ""), seat("eu", seatMember, ""))
				bubble(t, w, begins(known...), "au", func(c *Client) {
					hearing(t)
					au.set(connectivity.TransientFailure)
					back := time.AfterFunc(3*time.Second, func() { au.set(connectivity.Ready) })
					defer back.Stop()
					var err error
					l := c.LeaseNamed("au/x", "acme/vm")
					if commit {
						_, _, err = l.Commit(t.Context(), 1)
					} else {
						_, err = l.Renew(t.Context(), time.Minute)
					}
					if err != nil || foreign == 0 {
						t.Errorf("%s, commit %t: %v after %d refusals", what, commit, err, foreign)
					}
				})
			})
		}
	}
}

// TestReleasesOfSitesThatLeave: tokens of a lease go back to its heir.
func TestReleasesOfSitesThatLeave(t *testing.T) {
	for _, state := range []samyav1.MemberState{seatDraining, seatGone, seatLost} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			au := w.site("au", near)
			w.site("eu", near)
			w.site("us", near)
			au.answers(func(*samyav1.Operation) *samyav1.Result {
				return failed(&apierr.Error{Reason: apierr.LeaseMoved, Site: "eu"})
			})
			heir := map[samyav1.MemberState]string{seatDraining: "eu", seatGone: "eu"}[state]
			w.seat(2, seat("au", state, heir), seat("eu", seatMember, ""), seat("us", seatMember, ""))
			bubble(t, w, nil, "us", func(c *Client) {
				hearing(t)
				r, err := c.LeaseNamed("au/x", "acme/vm").Return(t.Context(), 1)
				want := map[bool]string{true: "us", false: "eu"}[state == seatLost]
				if err != nil || r.Site != want {
					t.Errorf("%v: %s took the tokens, %v; want %s", state, r.Site, err, want)
				}
				if n := au.arrived(); (n == 1) != (state == seatDraining) {
					t.Errorf("%v: %d calls reached the home", state, n)
				}
			})
		})
	}
}

// TestAddressesThatReturn: a target of the configuration may come to be another site.
func TestAddressesThatReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		au := w.site("au", near)
		w.site("eu", far)
		w.seat(2, seat("au", seatGone, "eu"), seat("eu", seatMember, ""))
		bubble(t, w, nil, "au", func(c *Client) {
			hearing(t)
			if g, err := c.Acquire(t.Context(), "acme/vm", 1); err != nil || g.Site != "eu" {
				t.Errorf("%s answers for a site that is gone, %v", g.Site, err)
			}
			au.set(connectivity.TransientFailure)
			hearing(t)
			au.mu.Lock()
			au.name, au.sites = "sa", []string{"sa"}
			au.mu.Unlock()
			au.set(connectivity.Ready)
			hearing(t)
			if g, err := c.Acquire(t.Context(), "acme/vm", 1); err != nil || g.Site != "sa" {
				t.Errorf("%s answers at the address of a new site, %v", g.Site, err)
			}
		})
	})
}

// TestWaysToLearn: a client learns from sites whose builds have no watch, and begins a
// watch anew that tells nothing.
func TestWaysToLearn(t *testing.T) {
	for what, spoil := range map[string]func(*server){
		"no watch":      func(s *server) { s.unwatched = true },
		"a mute watch":  func(s *server) { s.mute = true },
		"a whole watch": func(*server) {},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			spoil(w.site("eu", near))
			w.site("us", near)
			w.servers["eu"].seat(1, seat("eu", seatMember, ""))
			bubble(t, w, begins("eu"), "eu", func(c *Client) {
				hearing(t)
				w.servers["eu"].seat(2, seat("eu", seatMember, ""), seat("us", seatMember, ""))
				_ = pause(t.Context(), seats.Silence)
				hearing(t)
				if got := c.addresses(); got != "eu us" {
					t.Errorf("%s: the targets are %s", what, got)
				}
			})
		})
	}
}
