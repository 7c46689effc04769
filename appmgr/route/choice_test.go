package route

import (
	"slices"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/health"
)

func TestOrder(t *testing.T) {
	now := time.Unix(1000, 0)
	at := func(name string, h health.Health) candidate {
		return candidate{name: name, here: name == "here", home: name == "home", health: h}
	}
	ms := func(n int) health.Health {
		return health.Health{Reach: health.Up, RTT: time.Duration(n) * time.Millisecond}
	}
	over := ms(1)
	over.OverloadedUntil = now.Add(time.Second)
	was := ms(20)
	was.OverloadedUntil = now
	off := at("off", ms(1))
	off.clockOff = true
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
		{"overloaded and unproven last", []candidate{at("over", over), at("new", health.Health{}), at("far", ms(300))}, []string{"far", "new", "over"}},
		{"a clock that differs", []candidate{at("over", over), off, at("new", health.Health{}), at("far", ms(300))}, []string{"far", "new", "off", "over"}},
		{"the process's own first", []candidate{at("a", ms(1)), at("home", ms(1)), at("here", ms(40))}, []string{"here", "home", "a"}},
		{"not before the process's own serves", []candidate{at("a", ms(1)), at("here", health.Health{})}, []string{"a", "here"}},
		{"overload ends", []candidate{at("b", ms(30)), at("was", was)}, []string{"was", "b"}},
		{"neither down nor full", []candidate{at("down", health.Health{Reach: health.Down}), full, at("a", ms(9))}, []string{"a"}},
	} {
		if got := order(c.in, now); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}
