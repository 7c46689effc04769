// Package inspection is what the partitions of sites did, in the JSON that app
// managers answer and people's tools read. It refuses to ask anybody, and to judge.
package inspection

import (
	"math"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Status is what the partitions of the sites asked did.
type Status struct {
	// Complete says whether every site asked has answered.
	Complete bool `json:"complete"`
	// Sites has one entry per site, in the order of the names.
	Sites []Site `json:"sites"`
}

// Site is what the partitions of one site did since it was started.
type Site struct {
	// Site is the site's name.
	Site string `json:"site"`
	// Known says whether the site answered; if not, Problem says why.
	Known   bool   `json:"known"`
	Problem string `json:"problem,omitempty"`
	// UpMS is for how many milliseconds the site has been up.
	UpMS int64 `json:"up_ms"`
	// Partitions are the site's, by number.
	Partitions []Partition `json:"partitions"`
	// Served counts the requests that partitions served, Cross those of them that
	// were of entities in several partitions, and Passed those that none could serve.
	Served uint64 `json:"served"`
	Cross  uint64 `json:"cross"`
	Passed uint64 `json:"passed"`
	// Imbalance is the load of the partition with most over the mean.
	Imbalance float64 `json:"imbalance"`
	// Repartitioning is how entities were assigned anew.
	Repartitioning Repartitioning `json:"repartitioning"`
	// Split are the entities whose tokens are split over the partitions, by name.
	Split []Split `json:"split"`
}

// Partition are the figures of one partition.
type Partition struct {
	// Entities belong to it.
	Entities uint64 `json:"entities"`
	// Operations are the requests that it had a part in.
	Operations uint64 `json:"operations"`
	// Queued are the requests that wait there.
	Queued uint64 `json:"queued"`
}

// Repartitioning is what became of the maps from entities to partitions.
type Repartitioning struct {
	// On says whether entities are assigned anew by what is used together.
	On bool `json:"on"`
	// Computed counts the maps, Applied and Skipped what became of them, and Failed
	// the cuts and switches that failed.
	Computed uint64 `json:"computed"`
	Applied  uint64 `json:"applied"`
	Skipped  uint64 `json:"skipped"`
	Failed   uint64 `json:"failed"`
	// Moved counts the entities assigned elsewhere.
	Moved uint64 `json:"moved"`
	// Tracking is the share of requests that is tracked at present.
	Tracking float64 `json:"tracking"`
	// LastCut is the share of what was used together that the last map has apart.
	LastCut float64 `json:"last_cut"`
	// LastCutMS is how many milliseconds the last cut took.
	LastCutMS float64 `json:"last_cut_ms"`
	// Pause is for how long requests stood still for new maps.
	Pause Pause `json:"pause"`
}

// Pause is for how long requests stood still, in microseconds.
type Pause struct {
	Count uint64  `json:"count"`
	P50   float64 `json:"p50_us"`
	P99   float64 `json:"p99_us"`
	Max   float64 `json:"max_us"`
}

// Split are the figures of one split entity.
type Split struct {
	// Name is the entity's.
	Name string `json:"name"`
	// Left is what each partition had of its tokens at the last look.
	Left []int64 `json:"left"`
	// Operations counts the requests that took of its slots since it was split.
	Operations uint64 `json:"operations"`
}

// Of returns what an answer says. Shares that are no numbers are told as 0: JSON has
// none such.
func Of(m *samyav1.InspectSitesResponse) Status {
	s := Status{Complete: m.GetComplete(), Sites: []Site{}}
	for _, site := range m.GetSites() {
		s.Sites = append(s.Sites, siteOf(site))
	}
	return s
}

func siteOf(m *samyav1.SiteInspection) Site {
	s := Site{
		Site: m.GetSite(), Known: m.GetKnown(), Problem: m.GetProblem(), UpMS: m.GetUp().AsDuration().Milliseconds(),
		Partitions: []Partition{}, Served: m.GetServed(), Cross: m.GetCross(), Passed: m.GetPassed(),
		Imbalance: finite(m.GetImbalance()), Repartitioning: repartitioningOf(m.GetRepartitioning()), Split: []Split{},
	}
	for _, p := range m.GetPartitions() {
		s.Partitions = append(s.Partitions, Partition{Entities: p.GetEntities(), Operations: p.GetOperations(), Queued: p.GetQueued()})
	}
	for _, e := range m.GetSplit() {
		s.Split = append(s.Split, Split{Name: e.GetName(), Left: append([]int64{}, e.GetLeft()...), Operations: e.GetOperations()})
	}
	return s
}

func repartitioningOf(m *samyav1.Repartitioning) Repartitioning {
	pause := m.GetPause()
	return Repartitioning{
		On: m.GetOn(), Computed: m.GetComputed(), Applied: m.GetApplied(), Skipped: m.GetSkipped(), Failed: m.GetFailed(),
		Moved: m.GetMoved(), Tracking: finite(m.GetTracking()), LastCut: finite(m.GetLastCut()),
		LastCutMS: m.GetLastCutTime().AsDuration().Seconds() * 1e3,
		Pause: Pause{
			Count: pause.GetCount(), P50: pause.GetP50().AsDuration().Seconds() * 1e6,
			P99: pause.GetP99().AsDuration().Seconds() * 1e6, Max: pause.GetMax().AsDuration().Seconds() * 1e6,
		},
	}
}

func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}
