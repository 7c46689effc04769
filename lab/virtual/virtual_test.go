package virtual

import (
	"slices"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/wan"
)

const ms = time.Millisecond

// world makes a world of three places, two of them in the same region.
func world(o Options) *World {
	o.Places, o.Network = []string{"us", "eu", "us"}, wan.Samya()
	return New(o)
}

// log notes events, and their times.
type log struct {
	w    *World
	what []string
	at   []time.Duration
}

func (l *log) note(what string) func() {
	return func() { l.what, l.at = append(l.what, what), append(l.at, l.w.Now()) }
}

func (l *log) want(t *testing.T, what ...string) {
	t.Helper()
	if !slices.Equal(l.what, what) {
		t.Errorf("%v happens at %v, want %v", l.what, l.at, what)
	}
}

// TestOrder: events happen when they are due, events of the same time in the order of the
// calls.
func TestOrder(t *testing.T) {
	w := world(Options{})
	l := &log{w: w}
	w.At(2*ms, l.note("b"))
	w.At(3*ms, l.note("d"))
	w.At(2*ms, l.note("c"))
	w.At(ms, func() { w.At(0, l.note("a")) })
	w.At(4*ms, l.note("late"))
	w.Until(3 * ms)
	l.want(t, "a", "b", "c", "d")
	if w.Now() != 3*ms || l.at[0] != ms {
		t.Errorf("%v, now %v", l.at, w.Now())
	}
}

// TestServe: a processor does its requests in sequence, each in its time, and a disk
// takes its time beside it.
func TestServe(t *testing.T) {
	w := world(Options{Service: 2 * ms, Commit: 5 * ms})
	l := &log{w: w}
	w.Serve(0, l.note("first"))
	w.Work(0, 3, l.note("three"))
	w.Serve(1, l.note("elsewhere"))
	w.Commit(0, l.note("durable"))
	w.Until(10 * ms)
	l.want(t, "first", "elsewhere", "durable", "three")
	if want := []time.Duration{2 * ms, 2 * ms, 5 * ms, 8 * ms}; !slices.Equal(l.at, want) {
		t.Errorf("%v", l.at)
	}
}

// TestSend: messages take half a round trip and more, arrive in order, and are
// counted.
func TestSend(t *testing.T) {
	w := world(Options{Seed: 3})
	l := &log{w: w}
	w.Send(0, 1, 10, l.note("a"))
	w.Send(0, 1, 20, l.note("b"))
	w.Send(0, 2, 30, l.note("near"))
	w.Until(time.Second)
	l.want(t, "near", "a", "b")
	if half := wan.Samya().OneWay("us", "eu"); l.at[1] < half || l.at[2] > half*3/2 || l.at[0] > 5*ms {
		t.Errorf("%v", l.at)
	}
	if w.Messages != 3 || w.Bytes != 60 {
		t.Errorf("%d messages, %d bytes", w.Messages, w.Bytes)
	}
}

// TestCrashEnds: a crash ends the work under way at its place, and loses the messages on
// their way to it. Work asked for after the restart is done.
func TestCrashEnds(t *testing.T) {
	w := world(Options{Service: ms, Commit: 3 * ms})
	l := &log{w: w}
	told := 0
	w.Watch(func() { told++ })
	w.Serve(0, l.note("served"))
	w.Serve(0, l.note("lost in the queue"))
	w.Commit(0, l.note("lost on the disk"))
	w.Send(1, 0, 1, l.note("lost on the way"))
	w.Send(0, 1, 1, l.note("from before"))
	w.At(1500*time.Microsecond, func() { w.Crash(0) })
	w.At(2*ms, func() {
		w.Send(1, 0, 1, l.note("lost, sent to nobody"))
		w.Restart(0)
		w.Serve(0, l.note("served again"))
	})
	w.Until(100 * ms)
	// A message is on its way if both are there when it arrives.
	l.want(t, "served", "served again", "from before")
	if told != 2 || !w.Up(0) || w.Messages != 2 {
		t.Errorf("told %d times, %d messages", told, w.Messages)
	}
	w.Send(0, 1, 1, l.note("sent before its sender crashed"))
	w.Crash(0)
	w.Send(0, 1, 1, l.note("lost, sent by nobody"))
	w.Until(time.Second)
	l.want(t, "served", "served again", "from before", "sent before its sender crashed")
}

// TestCut: messages cross no cut, neither as they leave nor as they arrive.
func TestCut(t *testing.T) {
	w := world(Options{})
	l := &log{w: w}
	w.Send(0, 1, 1, l.note("on its way"))
	w.Cut([]int{0, 1, 0})
	w.Send(0, 1, 1, l.note("across"))
	w.Send(0, 2, 1, l.note("same side"))
	if w.Reaches(0, 1) || !w.Reaches(0, 2) {
		t.Error("the cut is elsewhere")
	}
	w.Until(time.Second)
	w.Heal()
	w.Send(0, 1, 1, l.note("healed"))
	w.Until(2 * time.Second)
	l.want(t, "same side", "healed")
}

// TestNames: places of the same region have different names.
func TestNames(t *testing.T) {
	if got := Names([]string{"us", "eu", "us", "us"}); !slices.Equal(got, []string{"us", "eu", "us-2", "us-3"}) {
		t.Error(got)
	}
}
