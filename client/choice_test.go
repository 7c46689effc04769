package client

import (
	"slices"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/health"
)

func TestOrder(t *testing.T) {
	now := time.Unix(1000, 0)
	names := map[*target]string{}
	at := func(name string, h health.Health) candidate {
		tg := &target{}
		names[tg] = name
		return candidate{target: tg, home: name == "home", rank: rankOf(h, name == "leaves", now), rtt: h.RTT}
	}
	ms := func(n int) health.Health {
		return health.Health{Reach: health.Up, RTT: time.Duration(n) * time.Millisecond}
	}
	over, was := ms(1), ms(20)
	over.OverloadedUntil, was.OverloadedUntil = now.Add(time.Second), now
	for _, c := range []struct {
		what string
		in   []candidate
		want []string
	}{
		{"none", nil, nil},
		{"nearest first", []candidate{at("far", ms(200)), at("near", ms(10)), at("mid", ms(90))}, []string{"near", "mid", "far"}},
		{"home before nearer ones", []candidate{at("a", ms(1)), at("home", ms(30))}, []string{"home", "a"}},
		{"as configured where equally near", []candidate{at("b", ms(3)), at("a", ms(1))}, []string{"b", "a"}},
		{
			"unproven, overloaded, leaving and down last, in this order",
			[]candidate{
				at("down", health.Health{Reach: health.Down}), at("leaves", ms(1)), at("over", over), at("new", health.Health{}), at("far", ms(300)),
			},
			[]string{"far", "new", "over", "leaves", "down"},
		},
		{"overload ends", []candidate{at("b", ms(30)), at("was", was)}, []string{"was", "b"}},
	} {
		order(c.in)
		var got []string
		for _, cand := range c.in {
			got = append(got, names[cand.target])
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}
