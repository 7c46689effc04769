// Package inspection has the figures of the partitions of sites, in the JSON that app
// managers answer and people's tools read. It asks no site and judges nothing.
package inspection

import (
	"math"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Status is the figures of the asked sites' partitions.
type Status struct {
	// Complete reports whether every asked site has answered.
	Complete bool `json:"complete"`
	// Sites has an entry for each site, in the order of the names.
	Sites []Site `json:"sites"`
}

// Site is the figures of a site's partitions since the site was started.
type Site struct {
	// Site is the site's name.
	Site string `json:"site"`
	// Known reports whether the site answered; if not, Problem says why.
	Known   bool   `json:"known"`
	Problem string `json:"problem,omitempty"`
	// UpMS is how many milliseconds the site has been up.
	UpMS int64 `json:"up_ms"`
	// Partitions are the site's partitions, by number.
	Partitions []Partition `json:"partitions"`
	// Served counts the requests that partitions served. Cross counts the served requests
	// of entities in several partitions. Passed counts the requests that no partition
	// could serve.
	Served uint64 `json:"served"`
	Cross  uint64 `json:"cross"`
	Passed uint64 `json:"passed"`
	// Imbalance is the load of the busiest partition divided by the mean load.
	Imbalance float64 `json:"imbalance"`
	// Repartitioning is how entities were assigned anew.
	Repartitioning Repartitioning `json:"repartitioning"`
	// Split are the entities with tokens split over the partitions, by name.
	Split []Split `json:"split"`
}

// Partition is the figures of a partition.
type Partition struct {
	// Entities counts the entities that belong to it.
	Entities uint64 `json:"entities"`
	// Operations counts the requests that it had a part in.
	Operations uint64 `json:"operations"`
	// Queued counts the requests that wait there.
	Queued uint64 `json:"queued"`
}

// Repartitioning is the figures of the maps from entities to partitions.
type Repartitioning struct {
	// On reports whether entities are assigned anew according to their use together.
	On bool `json:"on"`
	// Computed counts the maps; Applied and Skipped count the maps put in force and the
	// maps dropped; Failed counts the cuts and switches that failed.
	Computed uint64 `json:"computed"`
	Applied  uint64 `json:"applied"`
	Skipped  uint64 `json:"skipped"`
	Failed   uint64 `json:"failed"`
	// Moved counts the entities assigned elsewhere.
	Moved uint64 `json:"moved"`
	// Tracking is the share of requests that is tracked at present.
	Tracking float64 `json:"tracking"`
	// LastCut is the share of use together that the last map separates.
	LastCut float64 `json:"last_cut"`
	// LastCutMS is how many milliseconds the last cut took.
	LastCutMS float64 `json:"last_cut_ms"`
	// Pause is how long requests stood still for new maps.
	Pause Pause `json:"pause"`
}

// Pause is how long requests stood still, in microseconds.
type Pause struct {
	Count uint64  `json:"count"`
	P50   float64 `json:"p50_us"`
	P99   float64 `json:"p99_us"`
	Max   float64 `json:"max_us"`
}

// Split is the figures of a split entity.
type Split struct {
	// Name is the entity's name.
	Name string `json:"name"`
	// Left is how many of its tokens each partition had at the last look.
	Left []int64 `json:"left"`
	// Operations counts the requests that took of its slots since it was split.
	Operations uint64 `json:"operations"`
}

// Of returns the figures of an answer. A share that is NaN or infinite becomes 0: JSON
// has no such numbers.
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
