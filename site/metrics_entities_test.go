package site

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
)

// catalogue plays a core's list of entities.
type catalogue []answer.View

func (c catalogue) ask(_ context.Context, prefix, after string, count int) (page []answer.View, more bool, err error) {
	for _, v := range c {
		switch {
		case !strings.HasPrefix(v.Name, prefix) || v.Name <= after:
		case len(page) == count:
			return page, true, nil
		default:
			page = append(page, v)
		}
	}
	return page, false, nil
}

// exposition is a collector's text on /metrics.
func exposition(t *testing.T, c prometheus.Collector) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	rec := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	return rec.Body.String()
}

func TestEntityMetrics(t *testing.T) {
	var all catalogue
	for i, n := range []string{"acme", "acme/vm", "acme/vm/gpu", "acme/web", "acme2", "globex", "globex/x"} {
		all = append(all, answer.View{Name: n, Limit: core.Tokens(100 + i), Left: core.Tokens(i) - 3, Net: core.Tokens(10 * i)})
	}
	for chosen, want := range map[string][]string{
		"":              nil,
		"acme":          {"acme", "acme/vm", "acme/vm/gpu", "acme/web"},
		"acme/":         {"acme/vm", "acme/vm/gpu", "acme/web"},
		"acme/*":        {"acme/vm", "acme/vm/gpu", "acme/web"},
		"acme/vm,acme/": {"acme/vm", "acme/vm/gpu", "acme/web"},
		"globex/x,none": {"globex/x"},
		"glob":          nil,
		"*":             {"acme", "acme/vm", "acme/vm/gpu", "acme/web", "acme2", "globex", "globex/x"},
	} {
		m := &entityMetrics{ask: all.ask}
		if chosen != "" {
			m.chosen = strings.Split(chosen, ",")
		}
		text := exposition(t, m)
		for i, v := range all {
			told := strings.Contains(text, fmt.Sprintf("samya_site_entity_limit_tokens{entity=%q} %d\n", v.Name, 100+i)) &&
				strings.Contains(text, fmt.Sprintf("samya_site_entity_available_tokens{entity=%q} %d\n", v.Name, i-3)) &&
				strings.Contains(text, fmt.Sprintf("samya_site_entity_acquired_tokens{entity=%q} %d\n", v.Name, 10*i))
			if told != slices.Contains(want, v.Name) {
				t.Errorf("%q: %s is told: %v\n%s", chosen, v.Name, told, text)
			}
		}
		if chosen != "" && !strings.Contains(text, "samya_site_entity_metrics_truncated 0\n") {
			t.Errorf("%q: %s", chosen, text)
		}
	}
}

// TestEntityMetricsAreBounded: a choice of too many entities is cut, and says so.
func TestEntityMetricsAreBounded(t *testing.T) {
	var all catalogue
	for i := range maxMetricEntities + 1 {
		all = append(all, answer.View{Name: fmt.Sprintf("a/%05d", i)})
	}
	for _, chosen := range [][]string{{"*"}, {"a/"}, {"a/01000", "a/"}} {
		text := exposition(t, &entityMetrics{chosen: chosen, ask: all.ask})
		if n := strings.Count(text, "\nsamya_site_entity_limit_tokens{"); n != maxMetricEntities || !strings.Contains(text, "samya_site_entity_metrics_truncated 1\n") {
			t.Errorf("%q: %d entities", chosen, n)
		}
	}
}

// TestEntityMetricsOfABusySite: a core that does not answer costs the other metrics
// nothing.
func TestEntityMetricsOfABusySite(t *testing.T) {
	busy := func(context.Context, string, string, int) ([]answer.View, bool, error) {
		return nil, false, errors.New("busy")
	}
	if text := exposition(t, &entityMetrics{chosen: []string{"*"}, ask: busy}); text != "" {
		t.Error(text)
	}
}

func TestMetricsEntitiesAreChecked(t *testing.T) {
	for _, bad := range [][]string{{""}, {"/"}, {"a//b"}, {"a b"}, {"*x"}, {"acme*"}, {"acme/**"}, {"/*"}, slices.Repeat([]string{"acme"}, 101)} {
		if checkMetricsEntities("metrics-entities", bad) == nil {
			t.Errorf("%.20q is taken", bad)
		}
	}
	if err := checkMetricsEntities("metrics-entities", []string{"*", "acme", "acme/", "acme/*", "acme/vm"}); err != nil {
		t.Error(err)
	}
}
