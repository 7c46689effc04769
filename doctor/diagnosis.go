package doctor

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/samya-db/samya/doctor/promql"
)

// The jobs of processes, as Prometheus has them.
const (
	JobSite   = "samya-site"
	JobAppMgr = "samya-appmgr"
)

// State is the answer of a process to a look.
type State string

// The states of a process.
const (
	// Answers: the process told metrics.
	Answers State = "answers"
	// Silent: the process did not answer.
	Silent State = "silent"
	// Refuses: the process answered without metrics.
	Refuses State = "refuses"
	// Unknown: nobody knows the address of the metrics, and the process answers others.
	Unknown State = "unknown"
)

// Process is a process of a cluster.
type Process struct {
	// Job is JobSite or JobAppMgr.
	Job string `json:"job"`
	// Name and Region are those of the process; empty if unknown.
	Name   string `json:"name"`
	Region string `json:"region"`
	// Instance is the host:port of the metrics, or else the name of the process.
	Instance string `json:"instance"`
	// State is the answer to the last look, and Problem the reason for no metrics.
	State   State  `json:"state"`
	Problem string `json:"problem,omitempty"`
}

// labels are the labels that Prometheus gives the metrics of a process, and the name.
func (p *Process) labels(cluster string) promql.Labels {
	l := promql.Labels{"job": p.Job, "instance": p.Instance}
	for name, v := range map[string]string{"cluster": cluster, "region": p.Region, "name": p.Name} {
		if v != "" {
			l[name] = v
		}
	}
	return l
}

// Sample is a value of a metric of a process.
type Sample struct {
	Metric string
	Labels map[string]string
	Value  float64
}

// Observation is a process with metrics.
type Observation struct {
	Process
	// Metrics are nil unless the state is Answers.
	Metrics []Sample
}

// Look is an observation of all processes of a cluster at a time.
type Look struct {
	At      time.Time
	Cluster string
	// Observations are of different processes.
	Observations []Observation
}

// Diagnosis judges looks at a cluster. A Diagnosis is not safe for concurrent use.
type Diagnosis struct {
	history *promql.History
	reads   map[string]bool
	seen    map[string]bool
	looks   int
	first   time.Time
	last    Look
	rules   []*ruleState
}

// ruleState is a rule with the points at which the rule holds.
type ruleState struct {
	*rule
	judged time.Time // the first look at which the rule could be judged
	active map[string]*active
}

// active is a series for which a rule holds since a time.
type active struct {
	since time.Time
	point promql.Point
}

// NewDiagnosis returns a diagnosis without looks.
func NewDiagnosis() *Diagnosis {
	d := &Diagnosis{reads: make(map[string]bool), seen: make(map[string]bool)}
	var keep time.Duration
	for _, r := range rules {
		d.rules = append(d.rules, &ruleState{rule: r, active: make(map[string]*active)})
		keep = max(keep, r.needs())
		for _, metric := range r.reads {
			d.reads[metric] = true
		}
	}
	// A value counts at the look that saw the value, and not later.
	d.history = promql.NewHistory(1, keep)
	return d
}

// startTime is the metric that tells when a process was started, in Unix seconds.
const startTime = "process_start_time_seconds"

// Add adds a look. Looks come in the order of time.
func (d *Diagnosis) Add(l Look) error {
	if d.looks == 0 {
		d.first = l.At
	}
	d.looks++
	d.last = l
	for i := range l.Observations {
		d.take(&l, &l.Observations[i])
	}
	for _, r := range recordings {
		points, err := r.expr.Eval(d.history, l.At)
		if err != nil {
			return fmt.Errorf("judging %s: %w", r.name, err)
		}
		for _, p := range points {
			d.history.Add(r.name, p.Labels, l.At, p.Value)
		}
	}
	for _, r := range d.rules {
		if r.looksBack > 0 && d.looks == 1 {
			continue
		}
		if r.judged.IsZero() {
			r.judged = l.At
		}
		points, err := r.expr.Eval(d.history, l.At)
		if err != nil {
			return fmt.Errorf("judging %s: %w", r.id, err)
		}
		r.hold(points, l.At)
	}
	return nil
}

// take adds the observation of a process.
func (d *Diagnosis) take(l *Look, o *Observation) {
	own := o.labels(l.Cluster)
	switch o.State {
	case Answers, Refuses:
		d.history.Add("up", own, l.At, 1)
	case Silent:
		d.history.Add("up", own, l.At, 0)
	}
	d.seen["up"] = true
	var started time.Time
	for _, s := range o.Metrics {
		if s.Metric == startTime {
			started = time.UnixMilli(int64(s.Value * 1000))
		}
	}
	for _, s := range o.Metrics {
		if !d.reads[s.Metric] {
			continue
		}
		d.seen[s.Metric] = true
		all := make(promql.Labels, len(own)+len(s.Labels))
		for k, v := range s.Labels {
			if v != "" { // no label and an empty label are the same
				all[k] = v
			}
		}
		for k, v := range own {
			if was, taken := s.Labels[k]; taken {
				all["exported_"+k] = was
			}
			all[k] = v
		}
		if !started.IsZero() {
			d.history.Born(s.Metric, all, started)
		}
		d.history.Add(s.Metric, all, l.At, s.Value)
	}
}

// hold notes for which series the rule holds now.
func (r *ruleState) hold(points []promql.Point, now time.Time) {
	was := r.active
	r.active = make(map[string]*active, len(points))
	for _, p := range points {
		key := p.Labels.Key()
		a := was[key]
		if a == nil {
			a = &active{since: now}
		}
		a.point = p
		r.active[key] = a
	}
}

// Report returns the findings of the looks so far.
func (d *Diagnosis) Report() (Report, error) {
	looked := d.last.At.Sub(d.first)
	report := Report{Cluster: d.last.Cluster, Looks: d.looks, LookedSeconds: seconds(looked)}
	var all []Finding
	for _, o := range d.last.Observations {
		report.Processes = append(report.Processes, o.Process)
	}
	all = append(all, d.apart()...)
	for _, r := range d.rules {
		j := Judged{ID: r.id, NeedsSeconds: seconds(r.needs())}
		if !r.judged.IsZero() && !slices.ContainsFunc(r.reads, func(m string) bool { return !d.seen[m] }) {
			j.Judged, j.JudgedSeconds = true, seconds(min(looked, r.needs()))
		}
		report.Rules = append(report.Rules, j)
		for _, a := range r.active {
			if held := d.last.At.Sub(a.since); held < r.wait && a.since.After(r.judged) {
				continue // not for long enough yet
			}
			f, err := r.finding(a.point)
			if err != nil {
				return Report{}, err
			}
			f.Where = d.problem(f.Labels)
			all = append(all, f)
		}
	}
	report.complete(all)
	return report, nil
}

// problem is the reason that a process of the given labels is silent; empty for others.
func (d *Diagnosis) problem(labels promql.Labels) string {
	for _, o := range d.last.Observations {
		if o.State == Silent && o.Job == labels["job"] && o.Instance == labels["instance"] {
			return o.Problem
		}
	}
	return ""
}

// finding is the finding of a rule that holds.
func (r *rule) finding(p promql.Point) (Finding, error) {
	f := found(r.id, "", "", p.Labels)
	if f.Severity = r.severity; !math.IsNaN(p.Value) && !math.IsInf(p.Value, 0) {
		f.Value = new(p.Value)
	}
	if op, bound, ok := r.expr.Bound(); ok {
		f.Bound = op + " " + strconv.FormatFloat(bound, 'g', -1, 64)
	}
	var err error
	if f.Summary, err = say(r.summary, p); err == nil {
		f.Means, err = say(r.means, p)
	}
	return f, err
}

// apart returns the findings about processes without metrics.
func (d *Diagnosis) apart() []Finding {
	var all []Finding
	answered := false
	for _, o := range d.last.Observations {
		answered = answered || o.State != Silent
		if o.State == Refuses || o.State == Unknown {
			all = append(all, found(MetricsUnread, "The metrics of "+called(&o.Process)+" were not read.", o.Problem, o.labels(d.last.Cluster)))
		}
	}
	if !answered {
		var where string
		for _, o := range d.last.Observations {
			if o.Problem != "" {
				where = called(&o.Process) + ": " + o.Problem
				break
			}
		}
		all = append(all, found(ClusterUnreachable, fmt.Sprintf("None of %d processes answers.", len(d.last.Observations)), where, nil))
	}
	return all
}

// called names a process to a reader.
func called(p *Process) string {
	kind := "the site"
	if p.Job == JobAppMgr {
		kind = "the app manager"
	}
	switch {
	case p.Name == "":
		return kind + " " + p.Instance
	case p.Instance == "" || p.Instance == p.Name:
		return kind + " " + p.Name
	}
	return kind + " " + p.Name + " (" + p.Instance + ")"
}
