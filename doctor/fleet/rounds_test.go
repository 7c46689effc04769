package fleet

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/samya-db/samya/doctor"
	"github.com/samya-db/samya/internal/httpapi"
)

// TestRounds: an app manager looks at itself, and at the sites it knows. However many ask, it
// looks twice in five seconds, and a caller that leaves does not end the round.
func TestRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		up := prometheus.NewGauge(prometheus.GaugeOpts{Name: "samya_appmgr_sites", Help: "x"})
		reg.MustRegister(up)
		var looks atomic.Int32
		r := NewRounds(&Fleet{Own: &Own{
			Name: "am", Region: "us", Instance: func() string { return "am:1" }, Metrics: reg,
			Sites: func(context.Context) (httpapi.Sites, error) {
				looks.Add(1)
				return httpapi.Sites{Cluster: "demo", Sites: []httpapi.Site{{Name: "eu", Region: "eu", Health: "unreachable"}}}, nil
			},
		}})
		for range 3 {
			go func() { _, _, _ = r.Report(t.Context()) }()
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		if _, _, err := r.Report(gone); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		report, at, err := r.Report(t.Context())
		if err != nil || looks.Load() != 2 || time.Since(at) != 0 || report.Cluster != "demo" || report.Looks != 2 {
			t.Errorf("%+v, %v, %d looks, %s ago", report, err, looks.Load(), time.Since(at))
		}
		states := map[string]doctor.State{}
		for _, p := range report.Processes {
			states[p.Name] = p.State
		}
		if len(states) != 2 || states["am"] != doctor.Answers || states["eu"] != doctor.Silent {
			t.Errorf("%v", states)
		}
		if report.Verdict != string(doctor.Critical) {
			t.Errorf("%+v", report.Findings)
		}
		<-time.After(keepReport)
		if _, _, err := r.Report(t.Context()); err != nil || looks.Load() != 4 {
			t.Errorf("%d looks, %v", looks.Load(), err)
		}
	})
}
