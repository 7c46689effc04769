package samya

import (
	"strconv"
	"time"

	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/plot"
)

// saturationStudy measures the maximal throughput of systems.
var saturationStudy = study{
	name:  "saturation",
	short: "The most that samya and MultiPaxSys commit, with more and more clients",
	long: `Has from 1 to ` + strconv.Itoa(mostClients) + ` clients in each region ask again as soon as they are answered, for
a second of virtual time after one to warm up.`,
	span:   saturationSpan,
	plays:  saturationPlays,
	result: saturationResult,
}

func saturationPlays(s *setting) []play {
	var all []play
	for _, n := range s.clients() {
		all = append(all, across(play{span: s.span, clients: n}, saturationSystems, []string{fit})...)
	}
	return all
}

const (
	mostClients    = 16_384
	saturationSpan = time.Second
)

var saturationSystems = []string{transfers, oneRound, batched}

// clients returns the numbers of clients in a region, for a run each.
func (s *setting) clients() []int {
	if s.quick {
		return []int{1, 64, 1024}
	}
	return []int{1, 4, 16, 64, 256, 1024, 4096, mostClients}
}

func saturationResult(r *runs) *experiment.Result {
	plays := saturationPlays(r.setting)
	at := func(system string, clients int) play {
		p := r.on(system, fit)
		p.clients = clients
		return p
	}
	clients := r.clients()
	res := &experiment.Result{
		Setup:  "Five regions, limit 5,000; clients ask again once answered, and release granted tokens.",
		Tables: []experiment.Table{r.table(plays, byClients, bySystem)},
		Notes:  []string{"The service time, of samya's own code, decides how much a processor can do; it excludes the real cost of a server's connections. Ratios say more than rates."},
	}
	for _, s := range saturationSystems {
		best, of := 0.0, 0
		for _, n := range clients {
			if v := r.median(at(s, n), (*outcome).rate); v > best {
				best, of = v, n
			}
		}
		why := "Not in the paper; reached with " + strconv.Itoa(of) + " clients a region."
		if of == clients[len(clients)-1] {
			why = "Not in the paper; still rising with the most clients."
		}
		res.Compared = append(res.Compared, experiment.Comparison{What: "most committed, " + title(s), Unit: "/s", Ours: best, Why: why})
	}
	for _, row := range paperTable6 {
		if row.system != oneRound {
			continue
		}
		for _, c := range []struct {
			what  string
			paper float64
			of    figure
		}{
			{"p90", row.p90, func(o *outcome) float64 { return o.all.p90 }},
			{"p95", row.p95, func(o *outcome) float64 { return o.all.p95 }},
			{"p99", row.p99, p99},
		} {
			res.Compared = append(res.Compared, experiment.Comparison{
				What: c.what + " with 1 client a region, " + title(oneRound), Unit: "ms", Paper: new(c.paper), Ours: r.median(at(oneRound, clients[0]), c.of),
				Why: "Five clients wait for each other's rounds at the leader; the paper does not give its clients' concurrency.",
			})
		}
	}
	axis := plot.Axis{Label: "clients in a region", Log: true}
	res.Figures = []experiment.Figure{picture(
		"", "Throughput and median latency against the number of clients, medians over the seeds.",
		r.against(&plot.Lines{Title: "Throughput", X: axis, Y: plot.Axis{Label: "committed", Unit: "transactions/s", Log: true}}, saturationSystems, clients, at, (*outcome).rate),
		r.against(&plot.Lines{Title: "Median latency", X: axis, Y: plot.Axis{Label: "p50", Unit: "ms", Log: true}}, saturationSystems, clients, at, func(o *outcome) float64 { return o.all.p50 }),
	)}
	return res
}
