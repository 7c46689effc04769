package core_test

import (
	"fmt"
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
)

// says hands a site a step of an audit, and returns the steps that the site sends for it.
func (r *rig) says(to core.SiteID, generation uint64, m message.Audit) []message.Audit {
	r.t.Helper()
	before := len(r.sent)
	m.To = to
	r.step(to, input.Deliver{From: m.From, Messages: []message.Envelope{{Entity: "e", Generation: generation, Audit: &m}}})
	return audits(r.sent[before:])
}

// audits are the steps of audits among messages.
func audits(sent []message.Envelope) (all []message.Audit) {
	for _, e := range sent {
		if e.Audit != nil {
			all = append(all, *e.Audit)
		}
	}
	return all
}

// auditBegun has a site begin an audit, drops its messages, and returns the audit's
// number and the entity's generation.
func (r *rig) auditBegun(site core.SiteID) (number, generation uint64) {
	r.t.Helper()
	before := len(r.sent)
	for _, other := range r.names {
		r.cut[other] = other != site
	}
	r.step(site, input.Wake{})
	r.cores[site].Audit("e")
	r.drain(site)
	for _, other := range r.names {
		delete(r.cut, other)
	}
	for _, e := range r.sent[before:] {
		if e.Audit != nil && e.Audit.Step == message.AuditWatch {
			return e.Audit.Number, e.Generation
		}
	}
	r.t.Fatal("no audit begins")
	return 0, 0
}

// TestWatchesOfSeveralAuditors: a site tells each auditor the most that was out since the
// site began to watch for that auditor. The watch's id alone selects the watch.
func TestWatchesOfSeveralAuditors(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 30)
	_, generation := r.auditBegun("a")
	watch := func(auditor core.SiteID, number uint64) uint64 {
		t.Helper()
		got := r.says("c", generation, message.Audit{From: auditor, Number: number, Step: message.AuditWatch})
		if len(got) != 1 || got[0].Step != message.AuditWatching || got[0].Number != number || got[0].Watch == 0 || got[0].To != auditor {
			t.Fatalf("it says %+v", got)
		}
		return got[0].Watch
	}
	tells := func(what string, auditor core.SiteID, id uint64, want string) {
		t.Helper()
		told := ""
		for _, m := range r.says("c", generation, message.Audit{From: auditor, Number: 5, Step: message.AuditRead, Watch: id}) {
			if m.Step != message.AuditTell || m.To != auditor || m.Number != 5 {
				t.Errorf("%s: it says %+v", what, m)
			}
			told += fmt.Sprint(m.Net)
		}
		if told != want {
			t.Errorf("%s: it tells of %q, want %q", what, told, want)
		}
	}
	r.acquire("c", "e", 2, "1")
	first := watch("a", 1)
	r.acquire("c", "e", 5, "2")
	r.release("c", "e", 5, "3")
	second := watch("b", 2)
	r.acquire("c", "e", 3, "4")
	r.release("c", "e", 4, "5")
	tells("the first", "a", first, "7")
	tells("the second", "b", second, "5")
	tells("the second by the id of the first", "b", first, "")
	tells("the first by the id of the second", "a", second, "")
	tells("the first by no id", "a", 0, "")
	third := watch("a", 3)
	tells("the watch that another took the place of", "a", first, "")
	tells("the other", "a", third, "1")
	tells("the second once more", "b", second, "5")
	r.release("c", "e", 9, "6")
	fourth := watch("a", 4)
	tells("one of less than nothing", "a", fourth, "-8")
	r.acquire("c", "e", 1, "7")
	tells("one of less than nothing, and more since", "a", fourth, "-7")
}

// TestAuditStepByStep: an auditor adds up the words of all members, each word once and by
// the first watch that the member named. Nothing else counts.
func TestAuditStepByStep(t *testing.T) {
	const watching, tell = message.AuditWatching, message.AuditTell
	type says struct {
		from  core.SiteID
		step  message.AuditStep
		watch uint64
		net   core.Tokens
		// number and shape are added to the audit's number and the entity's shape. The
		// entity was never reshaped.
		number, shape uint64
		// applied is the last instance that it has applied.
		applied avantan.Instance
	}
	raised := func(r *rig) { r.wantCode(r.change("a", input.SetLimit, "e", 40, "raise"), answer.OK) }
	b, c := says{from: "b", step: watching, watch: 11}, says{from: "c", step: watching, watch: 12}
	tellB, tellC := says{from: "b", step: tell, net: -5}, says{from: "c", step: tell}
	for _, tc := range []struct {
		what string
		// before runs ahead of the audit, early ahead of the watches, and between ahead
		// of the others' words.
		before, early, between func(*rig)
		watch, tell            []says
		want                   core.Tokens
	}{
		{what: "all tell", watch: []says{b, c}, tell: []says{tellB, tellC}, want: 5},
		{what: "the other way round", watch: []says{c, b}, tell: []says{tellC, tellB}, want: 5},
		{what: "one tells", watch: []says{b, c}, tell: []says{tellB}},
		{what: "the other tells", watch: []says{b, c}, tell: []says{{from: "c", step: tell, net: -5}}},
		{what: "one tells twice", watch: []says{b, c}, tell: []says{tellB, tellB}},
		{what: "the first word counts", watch: []says{b, c}, tell: []says{tellB, {from: "b", step: tell, net: -9}, tellC}, want: 5},
		{what: "one watches twice", watch: []says{b, {from: "b", step: watching, watch: 13}, c}, tell: []says{tellB, tellC}, want: 5},
		{what: "nobody of that name", watch: []says{b, c, {from: "d", step: watching, watch: 14}}, tell: []says{tellB, tellC, {from: "d", step: tell, net: -9}}, want: 5},
		{what: "one tells too early", watch: []says{b, tellC, {from: "b", step: tell, net: -5, number: 1}, c}, tell: []says{tellB}},
		{what: "of another audit", watch: []says{b, c}, tell: []says{{from: "b", step: tell, net: -5, number: 1}, tellC}},
		{what: "of another shape", watch: []says{b, c}, tell: []says{{from: "b", step: tell, net: -5, shape: 1}, tellC}},
		{what: "it adds up to nothing", watch: []says{b, c}, tell: []says{tellB, {from: "c", step: tell, net: 5}}},
		{what: "it adds up to more", watch: []says{b, c}, tell: []says{tellB, {from: "c", step: tell, net: 6}}},
		{what: "it adds up to less", watch: []says{b, c}, tell: []says{tellB, {from: "c", step: tell, net: 4}}, want: 1},
		{
			what: "with some out here", watch: []says{b, c}, tell: []says{tellB, tellC}, want: 2,
			before: func(r *rig) { r.acquire("a", "e", 3, "x") },
		},
		{
			what: "with some out here meanwhile", watch: []says{b, c}, tell: []says{tellB, tellC}, want: 2,
			between: func(r *rig) { r.acquire("a", "e", 3, "x"); r.release("a", "e", 3, "y") },
		},
		{
			what: "with some given back here meanwhile", watch: []says{b, c}, tell: []says{tellB, tellC}, want: 2,
			before:  func(r *rig) { r.acquire("a", "e", 3, "x") },
			between: func(r *rig) { r.release("a", "e", 3, "y") },
		},
		{what: "one is behind", watch: []says{b, c}, tell: []says{{from: "b", step: tell, net: -5, applied: 1}, tellC}, before: raised},
		{
			what: "none is behind", watch: []says{b, c}, want: 5, before: raised,
			tell: []says{{from: "b", step: tell, net: -5, applied: 1}, {from: "c", step: tell, applied: 2}},
		},
		{
			what: "in time", watch: []says{b, c}, tell: []says{tellB, tellC}, want: 5,
			between: func(r *rig) { r.now.Tick += 5000 },
		},
		{
			what: "too late", watch: []says{b, c}, tell: []says{tellB, tellC},
			between: func(r *rig) { r.now.Tick += 5001 },
		},
		{
			what: "the limit changes meanwhile", watch: []says{b, c}, tell: []says{tellB, tellC},
			between: func(r *rig) { r.wantCode(r.change("a", input.SetLimit, "e", 30, "raise"), answer.OK) },
		},
		{
			what: "the limit changes before all watch", watch: []says{b, c}, tell: []says{tellB, tellC},
			early: func(r *rig) { r.wantCode(r.change("a", input.SetLimit, "e", 30, "raise"), answer.OK) },
		},
		{
			what: "the auditor begins anew", watch: []says{b, c}, tell: []says{tellB, tellC},
			between: func(r *rig) { r.auditBegun("a") },
		},
	} {
		r := newRig(t, 3, nil)
		r.create("e", 30)
		if tc.before != nil {
			tc.before(r)
		}
		number, generation := r.auditBegun("a")
		say := func(s says) []message.Audit {
			return r.says("a", generation, message.Audit{
				From: s.from, Number: number + s.number, Step: s.step, Watch: s.watch, Net: s.net, Shape: s.shape, Applied: s.applied,
			})
		}
		if tc.early != nil {
			tc.early(r)
		}
		reads := make(map[core.SiteID]uint64)
		for i, s := range tc.watch {
			for _, m := range say(s) {
				if m.Step != message.AuditRead || i+1 < len(tc.watch) && tc.watch[i+1].step == watching && tc.watch[i+1].from != "d" {
					t.Errorf("%s: after %+v it says %+v", tc.what, s, m)
				}
				reads[m.To] = m.Watch
			}
		}
		if len(reads) != 2 || reads["b"] != 11 || reads["c"] != 12 {
			t.Errorf("%s: it asks by the watches %v", tc.what, reads)
		}
		if tc.between != nil {
			tc.between(r)
		}
		for _, s := range tc.tell {
			say(s)
		}
		found := 0
		if tc.want > 0 {
			found = 1
		}
		if n := r.count(event.SurplusFound); n != found {
			t.Errorf("%s: found %d times", tc.what, n)
		}
		r.advance(2000)
		if got := r.surplus("e"); got != tc.want {
			t.Errorf("%s: %d are set aside, want %d", tc.what, got, tc.want)
		}
	}
}
