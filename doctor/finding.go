package doctor

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/samya-db/samya/doctor/promql"
)

// Severity is how bad a finding is.
type Severity string

// The severities, the worst first. A notice asks for nothing.
const (
	Critical Severity = "critical"
	Warning  Severity = "warning"
	Notice   Severity = "notice"
)

var severities = []Severity{Critical, Warning, Notice}

// Finding is a fault.
type Finding struct {
	// ID is the name of finding, alert and runbook, such as SamyaSiteDown.
	ID string `json:"id"`
	// Severity is that of the alert.
	Severity Severity `json:"severity"`
	// Labels are the subject of the finding: cluster, region, name, instance, entity, …
	Labels map[string]string `json:"labels"`
	// Summary is the fault, Means the consequence, Do the remedy.
	Summary string `json:"summary"`
	Means   string `json:"means"`
	Do      string `json:"do"`
	// Runbook is the address of the runbook.
	Runbook string `json:"runbook"`
	// Value is the number seen, and Bound the bound of the rule, such as "> 0.05"; both
	// empty for findings without a number.
	Value *float64 `json:"value,omitempty"`
	Bound string   `json:"bound,omitempty"`
	// Where tells the place of damage, or the cause, if there is one.
	Where string `json:"where,omitempty"`
}

// order sorts findings: the worst first, then by id and labels.
func order(a, b Finding) int {
	return cmp.Or(
		cmp.Compare(slices.Index(severities, a.Severity), slices.Index(severities, b.Severity)),
		cmp.Compare(a.ID, b.ID),
		cmp.Compare(promql.Labels(a.Labels).Key(), promql.Labels(b.Labels).Key()),
		cmp.Compare(a.Where, b.Where),
	)
}

// perID bounds the findings of one id in a report.
const perID = 20

// arrange sorts findings, drops repetitions, and drops findings beyond perID of an id.
func arrange(all []Finding) (kept []Finding, leftOff int) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, order)
	all = slices.CompactFunc(all, func(a, b Finding) bool { return order(a, b) == 0 })
	of := make(map[string]int)
	for _, f := range all {
		if of[f.ID]++; of[f.ID] > perID {
			leftOff++
			continue
		}
		kept = append(kept, f)
	}
	return kept, leftOff
}

// Report is the answer of a doctor.
type Report struct {
	// Verdict is the worst severity found; "healthy" without findings beyond notices.
	Verdict string `json:"verdict"`
	// Cluster is the name of the cluster; empty if unknown.
	Cluster string `json:"cluster,omitempty"`
	// Looks counts the looks, and LookedSeconds is the time from the first to the last.
	Looks         int     `json:"looks,omitempty"`
	LookedSeconds float64 `json:"looked_seconds,omitempty"`
	// Processes are the processes looked at.
	Processes []Process `json:"processes,omitempty"`
	// Data tells of the data directory looked at.
	Data *Data `json:"data,omitempty"`
	// Findings are sorted, the worst first. LeftOff counts further findings of ids of
	// which 20 are told.
	Findings []Finding `json:"findings"`
	LeftOff  int       `json:"left_off"`
	// Rules tell for how long each rule was judged.
	Rules []Judged `json:"rules,omitempty"`
}

// Judged tells for how long a rule was judged.
type Judged struct {
	ID string `json:"id"`
	// Needs is how far the alert looks back and JudgedSeconds how far the doctor did, in
	// seconds. Less is the short form of the rule.
	NeedsSeconds  float64 `json:"needs_seconds"`
	JudgedSeconds float64 `json:"judged_seconds"`
	// Judged is false if no process tells the metrics that the rule is about, or there
	// were too few looks.
	Judged bool `json:"judged"`
}

// healthy is the verdict without critical findings and warnings.
const healthy = "healthy"

// complete arranges the findings of a report and sets the verdict.
func (r *Report) complete(all []Finding) {
	r.Findings, r.LeftOff = arrange(all)
	if r.Findings == nil {
		r.Findings = []Finding{}
	}
	r.Verdict = healthy
	if len(r.Findings) > 0 && r.Findings[0].Severity != Notice {
		r.Verdict = string(r.Findings[0].Severity)
	}
}

// count returns how many findings have each severity.
func (r *Report) count() map[Severity]int {
	n := make(map[Severity]int)
	for _, f := range r.Findings {
		n[f.Severity]++
	}
	return n
}

// known are the findings that need no rule of Prometheus, with the severity of each.
var known = map[string]Severity{
	ClusterUnreachable: Critical,
	MetricsUnread:      Warning,
	DataMissing:        Critical,
	DataUnknown:        Critical,
	DataDamaged:        Critical,
	LogDamaged:         Critical,
	LogForeign:         Critical,
	BooksBroken:        Critical,
	DiskSpace:          Warning,
	LogTorn:            Notice,
	DataLeftovers:      Notice,
	DataRescued:        Notice,
}

// The findings that need no rule of Prometheus.
const (
	// ClusterUnreachable: no process of the cluster answers.
	ClusterUnreachable = "SamyaClusterUnreachable"
	// MetricsUnread: a process answers without metrics.
	MetricsUnread = "SamyaMetricsUnread"
	// DataMissing: the directory lacks the base of the data.
	DataMissing = "SamyaDataMissing"
	// DataUnknown: the data has a format that this version cannot read.
	DataUnknown = "SamyaDataUnknown"
	// DataDamaged: the base is damaged.
	DataDamaged = "SamyaDataDamaged"
	// LogDamaged: an acknowledged part of the log is missing or damaged.
	LogDamaged = "SamyaLogDamaged"
	// LogForeign: the log belongs to other data than the base.
	LogForeign = "SamyaLogForeign"
	// BooksBroken: the data can be read, and contradicts other data.
	BooksBroken = "SamyaBooksBroken"
	// DiskSpace: the disk has too little space for a start and for checkpoints.
	DiskSpace = "SamyaDiskSpace"
	// LogTorn: the log ends with a commit that a crash cut off.
	LogTorn = "SamyaLogTorn"
	// DataLeftovers: files lie in the directory that a start cut off has left.
	DataLeftovers = "SamyaDataLeftovers"
	// DataRescued: what the data holds was given back to the cluster.
	DataRescued = "SamyaDataRescued"
)

// IDs returns the names of all findings, sorted: of the rules, and of all others.
func IDs() []string {
	all := slices.Collect(maps.Keys(known))
	for _, r := range rules {
		all = append(all, r.id)
	}
	slices.Sort(all)
	return all
}

// seconds is a duration in seconds.
func seconds(d time.Duration) float64 { return d.Seconds() }
