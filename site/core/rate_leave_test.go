package core_test

import (
	"fmt"
	"testing"

	"github.com/samya-db/samya/avantan/handoff"
	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
)

// TestReservedByALeaver: the tokens out of a quota above go to the heir, where they come back
// by the clock. As a lease from before ends at the leaver, they do not come back once more:
// neither while the site leaves nor after its drain was cancelled.
func TestReservedByALeaver(t *testing.T) {
	hour := rates.Terms{Kind: rates.Window, Count: 1, Unit: rates.Hour}
	for _, c := range []struct {
		what  string
		terms rates.Terms
		stays bool
		// passes is the time until the lease is given back.
		passes core.Tick
	}{
		{"a window that has ended", minute, false, 70_000},
		{"a bucket that is full again", bucket, false, 70_000},
		{"a window that goes on, and the site stays", hour, true, 10_000},
		{"a bucket, and the site stays", bucket, true, 10_000},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := grow(t, input.Change{Name: "calls", Limit: 30, Rate: c.terms}, input.Change{Name: "jobs", Limit: 90})
			r.wantCode(r.lease("c", "jobs", 6, "s", 600_000), answer.OK)
			r.drainSite("a", "c", "b")
			r.advance(10_000)
			if c.stays {
				r.wantCode(r.changed("a", input.Change{Kind: input.KeepSite, Name: "c", RequestID: "keep"}), answer.OK)
			}
			r.advance(c.passes)
			r.wantCode(r.giveBack("c", "jobs", "s", 0, "back"), answer.OK)
			r.advance(20_000)
			left, offered, net := r.books("calls")
			if left+offered+net != 30 || left+offered > 30 {
				t.Errorf("%d left, %d offered, %d out", left, offered, net)
			}
			for _, at := range r.names {
				if v := r.view(at, "calls"); v.Net < 0 {
					t.Errorf("%s: %d left, %d out", at, v.Left, v.Net)
				}
			}
			if _, _, net := r.books("jobs"); net != 0 {
				t.Errorf("%d tokens of the allocation below are out", net)
			}
		})
	}
}

// TestLeaseToAnHeir: tokens of a lease of a rate quota have come back by the clock before its
// site leaves. They do not come back once more, neither at the heir nor at the site.
func TestLeaseToAnHeir(t *testing.T) {
	sliding := rates.Terms{Kind: rates.Sliding, Count: 1, Unit: rates.Minute}
	for what, terms := range map[string]rates.Terms{"window": minute, "bucket": bucket, "sliding": sliding} {
		for _, stays := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stays %v", what, stays), func(t *testing.T) {
				r := grow(t, input.Change{Name: "llm", Limit: 30, Rate: terms})
				r.wantCode(r.lease("c", "llm", 4, "s", 900_000), answer.OK)
				r.advance(130_000)
				r.wantCode(r.acquire("c", "llm", 1, "1"), answer.OK)
				r.drainSite("a", "c", "b")
				r.advance(10_000)
				if stays {
					r.wantCode(r.changed("a", input.Change{Kind: input.KeepSite, Name: "c", RequestID: "keep"}), answer.OK)
				}
				for range 20 {
					r.advance(10_000)
					left, offered, net := r.books("llm")
					if left+offered+net != 30 || left+offered > 30 {
						t.Fatalf("%d left, %d offered, %d out", left, offered, net)
					}
					for _, at := range r.names {
						if v := r.view(at, "llm"); v.Net < 0 {
							t.Fatalf("%s: %d left, %d out", at, v.Left, v.Net)
						}
					}
				}
			})
		}
	}
}

// TestTokensOutToALostHeir: if the heir is lost, tokens out of a rate quota on their way are
// lost with it, those of a lease among them: they may have come back there by the clock.
func TestTokensOutToALostHeir(t *testing.T) {
	for what, terms := range map[string]rates.Terms{"window": minute, "bucket": bucket} {
		for name, kind := range map[string]handoff.Kind{"taken": handoff.Ack, "not taken": handoff.Bequeath} {
			t.Run(what+" "+name, func(t *testing.T) {
				r := newRig(t, 4, func(c *core.Config) { c.Trigger, c.Admission, c.Retention = "reactive", "refuse", leavingRetention })
				call := r.changeAsync("a", input.Change{Kind: input.CreateEntity, Name: "llm", Limit: 40, RequestID: "create", Rate: terms})
				r.advance(2000)
				r.wantCode(r.answer(call), answer.OK)
				r.advance(core.Tick(60_000 - r.now.Wall%60_000))
				r.wantCode(r.acquire("d", "llm", 3, "1"), answer.OK)
				r.wantCode(r.lease("d", "llm", 4, "s", 900_000), answer.OK)
				r.loses = func(e *message.Envelope) bool { return e.Handoff != nil && e.Handoff.Kind == kind }
				r.drainSite("b", "d", "a")
				r.advance(2 * leavingRetention)
				r.loseHeir("b", "d", "a")
				r.advance(300_000)
				v := r.view("b", "llm")
				left, offered, net := r.books("llm")
				if left != 20 || left+offered+net+v.WrittenOff != 40 {
					t.Errorf("%d left, %d offered, %d out, %d written off", left, offered, net, v.WrittenOff)
				}
			})
		}
	}
}
