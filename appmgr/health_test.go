package appmgr

import (
	"slices"
	"testing"
	"time"
)

func TestOrder(t *testing.T) {
	now := time.Unix(1000, 0)
	at := func(name string, h health) candidate { return candidate{name: name, home: name == "home", health: h} }
	ms := func(n int) health { return health{reach: up, rtt: time.Duration(n) * time.Millisecond} }
	over := ms(1)
	over.overloadedUntil = now.Add(time.Second)
	was := ms(20)
	was.overloadedUntil = now
	full := at("full", ms(1))
	full.full = true
	for _, c := range []struct {
		what string
		in   []candidate
		want []string
	}{
		{"none", nil, nil},
		{"nearest first", []candidate{at("far", ms(200)), at("near", ms(10)), at("mid", ms(90))}, []string{"near", "mid", "far"}},
		{"home where equally near", []candidate{at("a", ms(1)), at("home", ms(3))}, []string{"home", "a"}},
		{"home only where equally near", []candidate{at("a", ms(1)), at("home", ms(30))}, []string{"a", "home"}},
		{"overloaded and unproven last", []candidate{at("over", over), at("new", health{}), at("far", ms(300))}, []string{"far", "new", "over"}},
		{"overload ends", []candidate{at("b", ms(30)), at("was", was)}, []string{"was", "b"}},
		{"neither down nor full", []candidate{at("down", health{reach: down}), full, at("a", ms(9))}, []string{"a"}},
	} {
		if got := order(c.in, now); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

func TestHealth(t *testing.T) {
	var h health
	h.answered(100 * time.Millisecond)
	h.answered(200 * time.Millisecond)
	if h.reach != up || h.rtt != 130*time.Millisecond {
		t.Errorf("after two answers: %+v", h)
	}
	h.late()
	if h.reach != up {
		t.Error("down after one late probe")
	}
	h.answered(130 * time.Millisecond)
	h.late()
	if h.reach != up {
		t.Error("late probes apart count together")
	}
	h.late()
	if h.reach != down || h.rtt != 0 {
		t.Errorf("after two late probes: %+v", h)
	}
	now := time.Unix(0, 0)
	for asked, want := range map[time.Duration]time.Duration{
		0: time.Second, time.Hour: maxOverload, 1: minOverload, 2 * time.Second: 2 * time.Second,
	} {
		if h.refused(now, asked); h.overloadedUntil.Sub(now) != want {
			t.Errorf("asked to stay away for %v, stays %v", asked, h.overloadedUntil.Sub(now))
		}
	}
}
