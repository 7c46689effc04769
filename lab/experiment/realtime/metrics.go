package realtime

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/samya-db/samya/devcluster/proc"
)

// counted is the sum of the counters of all sites.
type counted struct {
	waited int
	// started is by trigger, ended by outcome.
	started, ended map[string]int
}

// scrape reads the metrics of all sites.
func scrape(ctx context.Context, sites []*proc.Process) (counted, error) {
	sum := counted{started: make(map[string]int), ended: make(map[string]int)}
	for _, s := range sites {
		if err := sum.add(ctx, s.HTTP); err != nil {
			return counted{}, fmt.Errorf("read the metrics of site %s: %w", s.Name, err)
		}
	}
	return sum, nil
}

// errNoMetric says that a site lacks a metric.
var errNoMetric = errors.New("no such metric")

func (c *counted) add(ctx context.Context, addr string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		return err
	}
	plain := &http.Transport{DisableKeepAlives: true}
	resp, err := plain.RoundTrip(req)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		return err
	}
	return errors.Join(
		each(families, "samya_site_waited_total", "", func(_ string, n int) { c.waited += n }),
		each(families, "samya_site_redistributions_started_total", "trigger", func(of string, n int) { c.started[of] += n }),
		each(families, "samya_site_redistributions_total", "outcome", func(of string, n int) { c.ended[of] += n }),
	)
}

// each calls tell with every counter of a name, by the value of a label.
func each(families map[string]*dto.MetricFamily, name, label string, tell func(value string, n int)) error {
	family := families[name]
	if family == nil {
		return fmt.Errorf("%w: %s", errNoMetric, name)
	}
	for _, m := range family.GetMetric() {
		value := ""
		for _, l := range m.GetLabel() {
			if l.GetName() == label {
				value = l.GetValue()
			}
		}
		tell(value, int(m.GetCounter().GetValue()))
	}
	return nil
}

// minus returns the counts since before.
func (c counted) minus(before counted) counted {
	c.waited -= before.waited
	for of, n := range before.started {
		c.started[of] -= n
	}
	for of, n := range before.ended {
		c.ended[of] -= n
	}
	return c
}
