package site

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

const (
	// maxMetricEntities bounds the entities with metrics of their own at a site, at
	// three series each.
	maxMetricEntities = 1000
	// maxMetricPrefixes bounds the list of [Config.MetricsEntities].
	maxMetricPrefixes = 100
	// everyEntity in MetricsEntities chooses all entities.
	everyEntity = "*"
)

// entityMetrics reports the tokens of chosen entities whenever metrics are collected.
// It reports at most maxMetricEntities: series of all entities would grow with the
// number of customers.
type entityMetrics struct {
	// chosen are names of entities and prefixes, as [Config.MetricsEntities].
	chosen []string
	// ask returns a page of the core's list of entities.
	ask func(ctx context.Context, prefix, after string, count int) (page []answer.View, more bool, err error)
}

var (
	descEntityLimit = prometheus.NewDesc("samya_site_entity_limit_tokens",
		"Limit of a chosen entity in the whole cluster, as known at this site.", []string{"entity"}, nil)
	descEntityAvailable = prometheus.NewDesc("samya_site_entity_available_tokens",
		"Tokens of a chosen entity that this site can grant; below zero in debt. Add up the sites for the cluster.", []string{"entity"}, nil)
	descEntityAcquired = prometheus.NewDesc("samya_site_entity_acquired_tokens",
		"Tokens of a chosen entity acquired at this site less released at it; below zero if clients release here and acquire elsewhere. "+
			"Add up the sites for the cluster.", []string{"entity"}, nil)
	descEntityTruncated = prometheus.NewDesc("samya_site_entity_metrics_truncated",
		"1 if more entities are chosen than have metrics, 0 if not.", nil, nil)
)

// checkMetricsEntities checks a choice of entities.
func checkMetricsEntities(field string, chosen []string) error {
	if len(chosen) > maxMetricPrefixes {
		return &name.Error{Field: field, Problem: "has more than 100 names and prefixes"}
	}
	for _, c := range chosen {
		if c == everyEntity {
			continue
		}
		if err := name.Entity(field, strings.TrimSuffix(strings.TrimSuffix(c, "/*"), "/")); err != nil {
			return err
		}
	}
	return nil
}

// Describe implements prometheus.Collector.
func (m *entityMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descEntityLimit, descEntityAvailable, descEntityAcquired, descEntityTruncated} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *entityMetrics) Collect(ch chan<- prometheus.Metric) {
	if len(m.chosen) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	views, truncated, err := m.views(ctx)
	if err != nil {
		return // the site is stopping, or too busy to answer
	}
	for i := range views {
		v := &views[i]
		gauge := func(d *prometheus.Desc, n core.Tokens) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), v.Name)
		}
		gauge(descEntityLimit, v.Limit)
		gauge(descEntityAvailable, v.Left)
		gauge(descEntityAcquired, v.Net)
	}
	more := 0.
	if truncated {
		more = 1
	}
	ch <- prometheus.MustNewConstMetric(descEntityTruncated, prometheus.GaugeValue, more)
}

// views returns the chosen entities, at most maxMetricEntities, each once.
func (m *entityMetrics) views(ctx context.Context) (views []answer.View, truncated bool, err error) {
	seen := make(map[string]bool)
	for _, chosen := range m.chosen {
		base, below := strings.CutSuffix(strings.TrimSuffix(chosen, "*"), "/")
		if chosen == everyEntity {
			base = ""
		}
		// An entity of the very name comes first among entities that begin with it.
		queries := []string{base + "/"}
		switch {
		case chosen == everyEntity:
			queries = []string{""}
		case !below:
			queries = []string{base, base + "/"}
		}
		for _, prefix := range queries {
			count := maxMetricEntities
			if prefix == base && base != "" {
				count = 1
			}
			page, more, err := m.ask(ctx, prefix, "", count)
			if err != nil {
				return nil, false, err
			}
			if count == 1 {
				page, more = slices.DeleteFunc(page, func(v answer.View) bool { return v.Name != base }), false
			}
			truncated = truncated || more
			for i := range page {
				switch {
				case seen[page[i].Name]:
				case len(views) == maxMetricEntities:
					truncated = true
				default:
					seen[page[i].Name] = true
					views = append(views, page[i])
				}
			}
		}
	}
	return views, truncated, nil
}

// page asks the core for a page of its list.
func (s *Site) page(ctx context.Context, prefix, after string, count int) ([]answer.View, bool, error) {
	in := &input.List{Prefix: prefix, After: after, Count: count}
	a, err := s.engine.Do(ctx, func(c input.Call) input.Input { in.Call = c; return in })
	if err != nil {
		return nil, false, err
	}
	return a.Views(), a.More, nil
}
