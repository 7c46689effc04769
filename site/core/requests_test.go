package core_test

import (
	"math"
	"slices"
	"testing"

	_ "github.com/samya-db/samya/internal/testheap"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

func TestAnswersOfRequests(t *testing.T) {
	const most = input.MaxTokens
	acquire := func(entity string, n core.Tokens) func(*rig) answer.Answer {
		return func(r *rig) answer.Answer { return r.acquire("a", entity, n, "x") }
	}
	release := func(entity string, n core.Tokens) func(*rig) answer.Answer {
		return func(r *rig) answer.Answer { return r.release("a", entity, n, "x") }
	}
	for name, tc := range map[string]struct {
		do   func(*rig) answer.Answer
		want answer.Answer
	}{
		"all there is":            {acquire("e", 10), answer.Answer{Code: answer.OK, Tokens: 10}},
		"part of it":              {acquire("e", 3), answer.Answer{Code: answer.OK, Tokens: 3, Left: 7}},
		"more than is left":       {func(r *rig) answer.Answer { r.acquire("a", "e", 3, "y"); return r.acquire("a", "e", 8, "x") }, answer.Answer{Code: answer.OutOfTokens, Left: 7, RetryAfter: 500}},
		"more than there is":      {acquire("e", 11), answer.Answer{Code: answer.ExceedsLimit, Tokens: 10, Left: 10}},
		"most":                    {acquire("e", most), answer.Answer{Code: answer.ExceedsLimit, Tokens: 10, Left: 10}},
		"none":                    {acquire("e", 0), answer.Answer{Code: answer.Invalid}},
		"negative":                {acquire("e", -1), answer.Answer{Code: answer.Invalid}},
		"least":                   {acquire("e", math.MinInt64), answer.Answer{Code: answer.Invalid}},
		"too many":                {acquire("e", most+1), answer.Answer{Code: answer.Invalid}},
		"of nothing":              {acquire("f", 1), answer.Answer{Code: answer.NotFound}},
		"release":                 {release("e", 4), answer.Answer{Code: answer.OK, Tokens: 4, Left: 14}},
		"release none":            {release("e", 0), answer.Answer{Code: answer.Invalid}},
		"release negative":        {release("e", -3), answer.Answer{Code: answer.Invalid}},
		"release too many":        {release("e", most+1), answer.Answer{Code: answer.Invalid}},
		"release to nothing":      {release("f", 1), answer.Answer{Code: answer.NotFound}},
		"release of never taken":  {release("e", most), answer.Answer{Code: answer.OK, Tokens: most, Left: most + 10}},
		"other amount":            {func(r *rig) answer.Answer { r.acquire("a", "e", 3, "x"); return r.acquire("a", "e", 4, "x") }, answer.Answer{Code: answer.Reused}},
		"other kind":              {func(r *rig) answer.Answer { r.acquire("a", "e", 3, "x"); return r.release("a", "e", 3, "x") }, answer.Answer{Code: answer.Reused}},
		"other entity":            {func(r *rig) answer.Answer { r.acquire("a", "e", 3, "x"); return r.acquire("a", "g", 3, "x") }, answer.Answer{Code: answer.Reused}},
		"other amount of refused": {func(r *rig) answer.Answer { r.acquire("a", "e", 11, "x"); return r.acquire("a", "e", 1, "x") }, answer.Answer{Code: answer.Reused}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1, nil)
			r.create("e", 10)
			r.create("g", 10)
			if got := tc.do(r); got.Code != tc.want.Code || got.Tokens != tc.want.Tokens || got.Left != tc.want.Left ||
				got.RetryAfter != tc.want.RetryAfter {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
			if v := r.view("a", "e"); v.Left+v.Net != 10 {
				t.Errorf("the books are %+v", v)
			}
		})
	}
}

// TestReleasesDoNotOverflow releases until the books are full. A refused release is not
// remembered: a client may repeat it once there is room.
func TestReleasesDoNotOverflow(t *testing.T) {
	r := newRig(t, 1, nil)
	r.create("e", input.MaxTokens)
	n := 0
	var a answer.Answer
	for a = r.release("a", "e", input.MaxTokens, id("r", n)); a.Code == answer.OK; a = r.release("a", "e", input.MaxTokens, id("r", n)) {
		if n++; n > 2000 {
			t.Fatal("no end of it")
		}
	}
	r.wantCode(a, answer.Overflow)
	if v := r.view("a", "e"); v.Left < 0 || v.Net > 0 || v.Left+v.Net != input.MaxTokens {
		t.Errorf("the books are %+v", v)
	}
	r.wantCode(r.acquire("a", "e", input.MaxTokens, "back"), answer.OK)
	r.wantCode(r.release("a", "e", input.MaxTokens, id("r", n)), answer.OK)
}

func TestRepeats(t *testing.T) {
	r := newRig(t, 1, nil)
	r.create("e", 10)
	first := map[string]answer.Answer{
		"granted":  r.acquire("a", "e", 4, "granted"),
		"refused":  r.acquire("a", "e", 7, "refused"),
		"released": r.release("a", "e", 2, "released"),
	}
	repeat := func(when string) {
		t.Helper()
		for id, want := range first {
			got := answer.Answer{}
			switch id {
			case "granted":
				got = r.acquire("a", "e", 4, id)
			case "refused":
				got = r.acquire("a", "e", 7, id)
			case "released":
				got = r.release("a", "e", 2, id)
			}
			if got.Code != want.Code || got.Tokens != want.Tokens || got.Left != want.Left {
				t.Errorf("%s, %s: %+v, first %+v", when, id, got, want)
			}
		}
		if v := r.view("a", "e"); v.Left != 8 || v.Net != 2 {
			t.Errorf("%s: books %+v", when, v)
		}
	}
	repeat("at once")
	r.restart("a")
	repeat("after a restart")
	r.change("a", input.SetLimit, "e", 100, "raise")
	r.change("a", input.SetLimit, "e", 10, "lower")
	repeat("when there was more")
	r.now.Wall -= 3600_000
	repeat("when the clock was put back")
}

// TestRepeatsAfterRetention: a repeat of a forgotten request runs anew.
func TestRepeatsAfterRetention(t *testing.T) {
	r := newRig(t, 1, func(c *core.Config) { c.Retention = 1000 })
	r.create("e", 10)
	r.acquire("a", "e", 4, "x")
	r.advance(900)
	r.acquire("a", "e", 4, "x")
	if v := r.view("a", "e"); v.Net != 4 {
		t.Errorf("within its retention: net %d", v.Net)
	}
	r.advance(200)
	r.acquire("a", "e", 1, "other")
	r.acquire("a", "e", 4, "x")
	if v := r.view("a", "e"); v.Net != 9 {
		t.Errorf("after its retention: net %d", v.Net)
	}
}

// TestRequestsAreForgottenOnDisk runs past the retention many times: the records on disk
// stay bounded, and a restart knows all that have not expired.
func TestRequestsAreForgottenOnDisk(t *testing.T) {
	r := newRig(t, 1, func(c *core.Config) { c.Retention = 1000 })
	r.create("e", 1)
	for i := range 5000 {
		r.acquire("a", "e", 1, id("a", i))
		r.release("a", "e", 1, id("r", i))
		r.advance(10)
		if i%500 == 499 {
			r.restart("a")
			r.wantCode(r.acquire("a", "e", 1, id("a", i-50)), answer.OK)
			if v := r.view("a", "e"); v.Net != 0 {
				t.Fatalf("a repeat after the restart moved tokens: %+v", v)
			}
		}
	}
	restored, err := r.disks["a"].Load()
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := restored.AllBlocks()
	if n := len(blocks); err != nil || n < 200 || n > 400 {
		t.Errorf("%d blocks on disk, 200 are needed; %v", n, err)
	}
	if n := r.cores["a"].Status().Requests; n > 250 {
		t.Errorf("%d requests in memory", n)
	}
}

// TestFullTableRecovers fills the table of requests. Nothing is done then, and as soon as
// the first have expired there is room again.
func TestFullTableRecovers(t *testing.T) {
	r := newRig(t, 1, func(c *core.Config) { c.Retention, c.MaxRequests = 1000, 3 })
	r.create("e", 10)
	for i := range 3 {
		r.wantCode(r.acquire("a", "e", 1, id("x", i)), answer.OK)
	}
	r.wantCode(r.acquire("a", "e", 1, "full"), answer.Overloaded)
	r.wantCode(r.release("a", "e", 1, "full"), answer.Overloaded)
	r.wantCode(r.acquire("a", "e", 1, id("x", 1)), answer.OK)
	if v := r.view("a", "e"); v.Net != 3 || r.cores["a"].Status().Requests != 3 {
		t.Errorf("books %+v, %+v", v, r.cores["a"].Status())
	}
	r.advance(1001)
	r.acquire("a", "e", 1, "sweeps")
	r.wantCode(r.acquire("a", "e", 1, "full"), answer.OK)
}

// TestQueue: acquires are served in the order of their arrival. An acquire of more tokens
// than are left stops nobody, and an acquire is refused when its time is up.
func TestQueue(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 300)
	r.cut["a"] = true
	r.wantCode(r.acquire("a", "e", 100, "all"), answer.OK)
	first := r.acquireAsync("a", "e", 2, "first", 5000)
	big := r.acquireAsync("a", "e", 50, "big", 1500)
	second := r.acquireAsync("a", "e", 2, "second", 5000)
	third := r.acquireAsync("a", "e", 2, "third", 5000)
	if v := r.view("a", "e"); v.Waiting != 4 {
		t.Fatalf("%d wait", v.Waiting)
	}
	r.release("a", "e", 1, "r1")
	r.unanswered(first)
	r.release("a", "e", 3, "r2")
	r.wantCode(r.answer(first), answer.OK)
	r.wantCode(r.answer(second), answer.OK)
	r.unanswered(third)
	r.wantCode(r.acquire("a", "e", 1, "no token left"), answer.OutOfTokens)
	r.release("a", "e", 3, "r3")
	r.wantCode(r.answer(third), answer.OK)
	r.wantCode(r.acquire("a", "e", 1, "small"), answer.OK)
	fourth := r.acquireAsync("a", "e", 2, "fourth", 5000)
	r.advance(1499)
	r.unanswered(big)
	r.advance(1)
	r.wantCode(r.answer(big), answer.OutOfTokens)
	r.wantCode(r.acquire("a", "e", 50, "big"), answer.OutOfTokens)
	r.advance(3499)
	r.unanswered(fourth)
	r.advance(1)
	r.wantCode(r.answer(fourth), answer.OutOfTokens)
	if n := r.cores["a"].Status().Waiting; n != 0 {
		t.Errorf("%d wait at the end", n)
	}
}

// TestAloneRefusesAtOnce: a site without others knows that there are no tokens.
func TestAloneRefusesAtOnce(t *testing.T) {
	r := newRig(t, 1, nil)
	r.create("e", 9)
	r.wantCode(r.answer(r.acquireAsync("a", "e", 6, "x", 5000)), answer.OK)
	r.wantCode(r.answer(r.acquireAsync("a", "e", 4, "y", 5000)), answer.OutOfTokens)
}

func TestQueueIsBounded(t *testing.T) {
	r := newRig(t, 3, func(c *core.Config) { c.MaxWaiting, c.MaxWaitingAll = 3, 4 })
	r.create("e", 2)
	r.create("f", 2)
	r.cut["a"] = true
	r.wantCode(r.acquire("a", "e", 1, "all of e"), answer.OK)
	r.wantCode(r.acquire("a", "f", 1, "all of f"), answer.OK)
	for i := range 3 {
		r.unanswered(r.acquireAsync("a", "e", 1, id("e", i), 5000))
	}
	over := r.acquireAsync("a", "e", 1, "over", 5000)
	r.wantCode(r.answer(over), answer.QueueFull)
	r.unanswered(r.acquireAsync("a", "f", 1, "f", 5000))
	r.wantCode(r.answer(r.acquireAsync("a", "f", 1, "over all", 5000)), answer.QueueFull)
	// An overloaded request is not remembered.
	r.release("a", "e", 4, "r")
	r.wantCode(r.acquire("a", "e", 1, "over"), answer.OK)
}

// TestQueuedTokensAreBounded: the tokens of all waiting acquires never add up to an
// overflow.
func TestQueuedTokensAreBounded(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", input.MaxTokens)
	r.cut["a"] = true
	r.wantCode(r.acquire("a", "e", r.view("a", "e").Left, "all"), answer.OK)
	refused := 0
	for i := range 200 {
		if _, answered := r.answers[r.acquireAsync("a", "e", input.MaxTokens, id("x", i), 60_000)]; answered {
			refused++
		}
	}
	if refused == 0 || refused == 200 {
		t.Errorf("%d of 200 are refused", refused)
	}
	delete(r.cut, "a")
	r.advance(65_000)
	if left, offered, net := r.books("e"); left+net != input.MaxTokens || offered != 0 {
		t.Errorf("books %d, %d, %d", left, offered, net)
	}
}

// cutOff is a cluster of three sites. The first site hears nothing of the others and has
// none left of the 30 tokens of e.
func cutOff(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, 3, nil)
	r.create("e", 30)
	r.cut["a"] = true
	r.wantCode(r.acquire("a", "e", 10, "all"), answer.OK)
	return r
}

// TestWaitingRepeats: a repeat of an acquire that waits joins it.
func TestWaitingRepeats(t *testing.T) {
	r := cutOff(t)
	calls := []input.Call{r.acquireAsync("a", "e", 5, "x", 3000)}
	r.wantCode(r.answer(r.acquireAsync("a", "e", 6, "x", 3000)), answer.Reused)
	for range 15 {
		calls = append(calls, r.acquireAsync("a", "e", 5, "x", 9000))
	}
	// A caller beyond the bound is not told that nothing was done: the request may yet be
	// granted.
	r.wantCode(r.answer(r.acquireAsync("a", "e", 5, "x", 3000)), answer.Unknown)
	if v := r.view("a", "e"); v.Waiting != 1 {
		t.Errorf("%d wait", v.Waiting)
	}
	r.release("a", "e", 7, "r")
	for _, c := range calls {
		if a := r.answer(c); a.Code != answer.OK || a.Tokens != 5 || a.Left != 2 {
			t.Errorf("answer %+v", a)
		}
	}
	if v := r.view("a", "e"); v.Left != 2 || v.Net != 8 {
		t.Errorf("books %+v", v)
	}
}

// TestWaitingIsForgottenInACrash: a waiting caller gets no answer, and may repeat.
func TestWaitingIsForgottenInACrash(t *testing.T) {
	r := cutOff(t)
	lost := r.acquireAsync("a", "e", 5, "x", 3000)
	r.restart("a")
	r.release("a", "e", 5, "r")
	r.wantCode(r.acquire("a", "e", 5, "x"), answer.OK)
	r.advance(5000)
	r.unanswered(lost)
}

func TestCancel(t *testing.T) {
	r := cutOff(t)
	first := r.acquireAsync("a", "e", 5, "x", 3000)
	again := r.acquireAsync("a", "e", 5, "x", 3000)
	r.step("a", &input.Cancel{Call: first})
	r.step("a", &input.Cancel{Call: "never heard of"})
	if v := r.view("a", "e"); v.Waiting != 1 {
		t.Errorf("%d wait after one of two callers has gone", v.Waiting)
	}
	r.step("a", &input.Cancel{Call: again})
	r.step("a", &input.Cancel{Call: again})
	if st := r.cores["a"].Status(); st.Waiting != 0 || st.Requests != 1 {
		t.Errorf("after both have gone: %+v", st)
	}
	r.release("a", "e", 5, "r")
	if v := r.view("a", "e"); v.Left != 5 {
		t.Errorf("books %+v", v)
	}
	r.unanswered(first)
	r.unanswered(again)
	// The site answers as if the acquire had never been made.
	r.wantCode(r.acquire("a", "e", 4, "x"), answer.OK)
}

func TestDeletedWhileWaiting(t *testing.T) {
	r := cutOff(t)
	calls := []input.Call{r.acquireAsync("a", "e", 5, "x", 30_000), r.acquireAsync("a", "e", 5, "x", 30_000)}
	limit := r.changeAsync("a", input.Change{Kind: input.SetLimit, Name: "e", Limit: 4, RequestID: "l", Wait: 30_000})
	r.wantCode(r.change("b", input.DeleteEntity, "e", 0, "d"), answer.OK)
	delete(r.cut, "a")
	r.advance(15_000)
	for _, c := range append(calls, limit) {
		r.wantCode(r.answer(c), answer.NotFound)
	}
	if st := r.cores["a"].Status(); st.Waiting != 0 || st.Entities != 0 {
		t.Errorf("%+v", st)
	}
	r.wantCode(r.acquire("a", "e", 5, "x"), answer.NotFound)
}

func TestList(t *testing.T) {
	r := newRig(t, 1, nil)
	var names []string
	for i := range 300 {
		name := id([]string{"a/x", "a/y", "a", "b", "a-"}[i%5], i)
		names = append(names, name)
		r.create(name, core.Tokens(i))
	}
	slices.Sort(names)
	for _, prefix := range []string{"", "a", "a/", "a/x", "a/x-100", "b", "a-", "zzz", "a/x-1000"} {
		for _, count := range []int{1, 7, 299, 300, 1000} {
			var got []string
			for after := ""; ; {
				call := r.nextCall()
				r.step("a", &input.List{Call: call, Prefix: prefix, After: after, Count: count})
				a := r.answer(call)
				for _, v := range a.Views() {
					got = append(got, v.Name)
				}
				if len(a.Views()) > count || a.More && len(a.Views()) != count {
					t.Fatalf("prefix %q, count %d: %d on a page, more %v", prefix, count, len(a.Views()), a.More)
				}
				if !a.More {
					break
				}
				after = a.Views()[len(a.Views())-1].Name
			}
			want := slices.DeleteFunc(slices.Clone(names), func(n string) bool {
				return len(n) < len(prefix) || n[:len(prefix)] != prefix
			})
			if !slices.Equal(got, want) {
				t.Errorf("prefix %q, count %d: got %d, want %d", prefix, count, len(got), len(want))
			}
		}
	}
	call := r.nextCall()
	r.step("a", &input.List{Call: call, Prefix: "a/", After: "b", Count: 5})
	if a := r.answer(call); len(a.Views()) != 0 || a.More {
		t.Errorf("behind the prefix: %+v", a)
	}
	call = r.nextCall()
	r.step("a", &input.List{Call: call})
	r.wantCode(r.answer(call), answer.Invalid)
}
