package doctor

import (
	"fmt"
	"strings"
	"text/template"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/samya-db/samya/deploy/monitoring"
	"github.com/samya-db/samya/doctor/promql"
)

// rule is an alerting rule.
type rule struct {
	id       string
	severity Severity
	wait     time.Duration
	expr     *promql.Expr
	// looksBack is the longest range that the rule reads, also by recording rules.
	looksBack time.Duration
	// reads are the metrics that the rule reads, also by recording rules.
	reads   []string
	summary *template.Template
	means   *template.Template
}

// needs is how far the rule looks back.
func (r *rule) needs() time.Duration { return max(r.wait, r.looksBack) }

// recording is a recording rule.
type recording struct {
	name string
	expr *promql.Expr
}

// rules and recordings are the rules of deploy/monitoring. A test reads both files, so
// that no release panics here.
var rules, recordings = mustRead(monitoring.Alerts, monitoring.Recording)

func mustRead(alerts, recorded []byte) ([]*rule, []recording) {
	r, rec, err := readRules(alerts, recorded)
	if err != nil {
		panic(err)
	}
	return r, rec
}

// writtenRule is a rule as in a file.
type writtenRule struct {
	Record, Alert, Expr string
	For                 time.Duration
	Labels, Annotations map[string]string
}

func readFile(file []byte) ([]writtenRule, error) {
	var parsed struct {
		Groups []struct{ Rules []writtenRule }
	}
	if err := yaml.Unmarshal(file, &parsed); err != nil {
		return nil, fmt.Errorf("reading the rules: %w", err)
	}
	var all []writtenRule
	for _, g := range parsed.Groups {
		all = append(all, g.Rules...)
	}
	return all, nil
}

// readRules reads files of rules.
func readRules(alerts, recorded []byte) ([]*rule, []recording, error) {
	var recs []recording
	byName := make(map[string]*promql.Expr)
	written, err := readFile(recorded)
	if err != nil {
		return nil, nil, err
	}
	for _, w := range written {
		expr, err := promql.Parse(w.Expr)
		if err != nil {
			return nil, nil, fmt.Errorf("rule %s: %w", w.Record, err)
		}
		recs, byName[w.Record] = append(recs, recording{w.Record, expr}), expr
	}
	if written, err = readFile(alerts); err != nil {
		return nil, nil, err
	}
	var all []*rule
	for _, w := range written {
		r := &rule{id: w.Alert, severity: Severity(w.Labels["severity"]), wait: w.For}
		if r.expr, err = promql.Parse(w.Expr); err == nil {
			r.summary, err = text(w.Annotations["summary"])
		}
		if err == nil {
			r.means, err = text(w.Annotations["description"])
		}
		if err != nil {
			return nil, nil, fmt.Errorf("rule %s: %w", w.Alert, err)
		}
		r.follow(r.expr, byName)
		all = append(all, r)
	}
	return all, recs, nil
}

// follow notes the metrics that an expression reads, through the recording rules. A
// recording rule reads earlier ones alone.
func (r *rule) follow(e *promql.Expr, byName map[string]*promql.Expr) {
	r.looksBack = max(r.looksBack, e.Range())
	for _, metric := range e.Metrics() {
		if of := byName[metric]; of != nil && strings.Contains(metric, ":") && of != e {
			r.follow(of, byName)
			continue
		}
		r.reads = append(r.reads, metric)
	}
}
