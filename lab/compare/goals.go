package compare

// Goal is a figure to reach, and the figure measured.
type Goal struct {
	// What names the figures compared.
	What string `json:"what"`
	// Bound is the least value, or with Below the highest.
	Bound float64 `json:"bound"`
	Below bool    `json:"below,omitempty"`
	// Unit is the unit of Bound and Got: "×" for a ratio.
	Unit string `json:"unit"`
	// Got is the measured value if Measured is set.
	Got      float64 `json:"got"`
	Measured bool    `json:"measured"`
	// Met reports whether Got is within Bound.
	Met bool `json:"met"`
}

// goal is a goal before its judgement.
type goal struct {
	what  string
	cell  Cell
	of    func(*Sample) float64
	over  *Cell // nil: an absolute figure, in unit
	to    func(*Sample) float64
	unit  string
	bound float64
	below bool
}

// The units of absolute goals.
const (
	perSecond = "/s"
	micros    = " µs"
)

// goals returns the goals of samya.
func goals() []goal {
	samya := func(way string) Cell { return Cell{Samya, way, Hot} }
	of := func(system, way string) *Cell { return &Cell{system, way, Hot} }
	unary, sdk, many, batch, open := samya(WayUnary), samya(WayStream64), samya(WayStream1024), samya(WayBatch), samya(WayStreamOpen)
	return []goal{
		{what: "gRPC unary over a bare gRPC echo", cell: unary, of: rate, over: of(BareGRPC, WayEcho), to: rate, bound: .8},
		{what: "SDK with 64 goroutines over gRPC unary", cell: sdk, of: rate, over: &unary, to: rate, bound: 2.5},
		{what: "SDK with 1,024 goroutines over gRPC unary", cell: many, of: rate, over: &unary, to: rate, bound: 6},
		{what: "batches of 100, operations a second", cell: batch, of: rate, unit: perSecond, bound: 400_000},
		{what: "HTTP over a bare net/http echo", cell: samya(WayHTTP), of: rate, over: of(BareHTTP, WayEcho), to: rate, bound: .45},
		{what: "SDK with 64 goroutines over redis always, singly", cell: sdk, of: rate, over: of(RedisAlways, WaySingle), to: rate, bound: 1.5},
		{what: "SDK with 64 goroutines over redis always without ids", cell: sdk, of: rate, over: of(RedisNoIDs, WaySingle), to: rate, bound: 3},
		{what: "SDK with 1,024 goroutines over redis always without ids", cell: many, of: rate, over: of(RedisNoIDs, WaySingle), to: rate, bound: 6},
		{what: "batches of 100 over redis always, pipelined by 100", cell: batch, of: rate, over: of(RedisAlways, WayPipelined), to: rate, bound: 2},
		{what: "batches of 100 over the same without ids", cell: batch, of: rate, over: of(RedisNoIDs, WayPipelined), to: rate, bound: 2},
		{
			what: "batches of 100 over the same without ids, 100,000 entities",
			cell: Cell{Samya, WayBatch, Even}, of: rate, over: &Cell{RedisNoIDs, WayPipelined, Even}, to: rate, bound: 1.3,
		},
		{what: "gRPC unary over PostgreSQL", cell: unary, of: rate, over: of(Postgres, WaySingle), to: rate, bound: 5},
		{what: "gRPC unary over etcd's compare-and-swap", cell: unary, of: rate, over: of(Etcd, WayCAS), to: rate, bound: 10},
		{what: "processor time of servers, HTTP", cell: samya(WayHTTP), of: serverCPU, unit: micros, bound: 45, below: true},
		{what: "processor time of the site, SDK with 64 goroutines", cell: sdk, of: serverCPU, unit: micros, bound: 6, below: true},
		{what: "processor time of the site, SDK with 1,024 goroutines", cell: many, of: serverCPU, unit: micros, bound: 2.5, below: true},
		{what: "processor time of the site, batches of 100", cell: batch, of: serverCPU, unit: micros, bound: 2, below: true},
		{what: "p99 of an open loop of the SDK", cell: open, of: p99, unit: micros, bound: 5000, below: true},
		{what: "p99.9 of an open loop of the SDK", cell: open, of: p999, unit: micros, bound: 20_000, below: true},
		{what: "p99 of an open loop over redis always without ids", cell: open, of: p99, over: of(RedisNoIDs, WayOpen), to: p99, bound: 1, below: true},
		{what: "p99.9 of an open loop over redis always without ids", cell: open, of: p999, over: of(RedisNoIDs, WayOpen), to: p999, bound: 1, below: true},
		{what: "p99.9 of 64 callers of the SDK over p99.9 of the sync alone", cell: sdk, of: p999, over: of(BareSync, WaySync), to: p999, bound: 1.5, below: true},
	}
}

// Judge judges the goals by the figures. A goal with an unmeasured cell is not met.
func (r *Report) Judge() {
	r.Goals = nil
	for _, g := range goals() {
		told := Goal{What: g.what, Bound: g.bound, Below: g.below, Unit: "×"}
		m := r.find(g.cell)
		if g.over == nil {
			told.Unit = g.unit
			if told.Measured = m != nil; told.Measured {
				told.Got = median(m.figures(g.of))
			}
		} else {
			over := r.find(*g.over)
			if told.Measured = m != nil && over != nil; told.Measured {
				told.Got = ratio(m, g.of, over, g.to)
			}
		}
		told.Met = told.Measured && (told.Got >= g.bound && !g.below || told.Got <= g.bound && g.below)
		r.Goals = append(r.Goals, told)
	}
}

// Met reports whether all goals are met.
func (r *Report) Met() bool {
	for _, g := range r.Goals {
		if !g.Met {
			return false
		}
	}
	return len(r.Goals) > 0
}
