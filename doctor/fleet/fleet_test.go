package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/doctor"
	"github.com/samya-db/samya/internal/testfuzz"
)

// plain connects without credentials.
func plain(addr string) (string, http.RoundTripper, error) { return addr, nil, nil }

// serve serves metrics with a status, and the answer of an app manager if there is one.
func serve(t *testing.T, status int, metrics, sites string) (addr string, stop func()) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/metrics":
			w.WriteHeader(status)
			_, _ = w.Write([]byte(metrics))
		case r.URL.Path == "/v1/sites" && sites != "":
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(sites))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://"), s.Close
}

func states(l doctor.Look) (all []string) {
	for _, o := range l.Observations {
		all = append(all, fmt.Sprintf("%s %s %s %s %d", o.Job, o.Name, o.Region, o.State, len(o.Metrics)))
	}
	return all
}

// TestLook: an app manager tells of sites, and all are asked. What it told is remembered
// when it falls silent.
func TestLook(t *testing.T) {
	us, _ := serve(t, http.StatusOK, "samya_site_entities 3\nsamya_site_claims 0\n", "")
	as, _ := serve(t, http.StatusForbidden, "", "")
	more, _ := serve(t, http.StatusOK, "samya_site_entities 3\n", "")
	gone, stop := serve(t, http.StatusOK, "", "")
	stop()
	am, stopManager := serve(t, http.StatusOK, "up 1\n", fmt.Sprintf(`{"cluster":"prod","answered_by":"am-us","sites":[
		{"name":"us","region":"r1","http_address":%q,"health":"serving"},{"name":"as","region":"r2","http_address":%q,"health":"serving"},
		{"name":"eu","region":"","http_address":%q,"health":"unreachable"},{"name":"sa","region":"r4","http_address":"","health":"unreachable"},
		{"name":"af","region":"r5","http_address":"","health":"serving"}]}`, us, as, gone))
	f := &Fleet{AppManagers: []string{"http://" + am, "http://" + gone}, Sites: []string{us, more}, Connect: plain}
	want := []string{
		"samya-appmgr am-us unknown answers 1", "samya-appmgr  unknown silent 0", "samya-site us r1 answers 2", "samya-site as r2 refuses 0",
		"samya-site eu unknown silent 0", "samya-site sa r4 silent 0", "samya-site af r5 unknown 0", "samya-site  unknown answers 1",
	}
	now := time.Unix(1, 0)
	look, err := f.Look(t.Context(), now)
	if got := states(look); err != nil || !slices.Equal(got, want) || look.Cluster != "prod" || !look.At.Equal(now) {
		t.Fatalf("%v, %v\ngot  %q\nwant %q", look.Cluster, err, got, want)
	}
	if o := look.Observations[3]; !strings.Contains(o.Problem, "403") || o.Instance != as {
		t.Errorf("%+v", o)
	}
	stopManager()
	want[0] = "samya-appmgr am-us unknown silent 0"
	look, err = f.Look(t.Context(), now)
	if got := states(look); err != nil || !slices.Equal(got, want) || look.Cluster != "prod" {
		t.Errorf("%v, %v\ngot  %q\nwant %q", look.Cluster, err, got, want)
	}
}

// TestNoSiteKnown: an app manager that reaches no site tells of silent sites. Of an app
// manager that does not tell the sites, nothing is known of them.
func TestNoSiteKnown(t *testing.T) {
	for problem, want := range map[string]doctor.State{
		`{"status":503,"title":"x","reason":"SITE_UNAVAILABLE","detail":"no site answers"}`: doctor.Silent,
		`{"status":403,"title":"x","reason":"PERMISSION_DENIED","detail":"not you"}`:        doctor.Unknown,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/sites" {
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = w.Write([]byte(problem))
			}
		}))
		defer s.Close()
		look, err := (&Fleet{AppManagers: []string{s.URL}, Connect: plain}).Look(t.Context(), time.Unix(1, 0))
		if err != nil || len(look.Observations) != 2 {
			t.Fatalf("%v, %q", err, states(look))
		}
		if o := look.Observations[1]; o.State != want || o.Job != doctor.JobSite || !strings.Contains(o.Problem, "list the sites: ") {
			t.Errorf("%+v, want %s", o, want)
		}
	}
}

// TestAddresses: an address that cannot be one of an app manager is an error; that of a
// site is told of the site.
func TestAddresses(t *testing.T) {
	f := &Fleet{AppManagers: []string{"ftp://x"}, Connect: plain}
	if _, err := f.Look(t.Context(), time.Unix(1, 0)); err == nil {
		t.Error("ftp is taken")
	}
	f = &Fleet{Sites: []string{"10.0.0.1:1"}, Connect: func(string) (string, http.RoundTripper, error) {
		return "", nil, errors.New("a token is not sent in clear")
	}}
	look, err := f.Look(t.Context(), time.Unix(1, 0))
	if err != nil || look.Observations[0].State != doctor.Unknown || !strings.Contains(look.Observations[0].Problem, "in clear") {
		t.Errorf("%+v, %v", look, err)
	}
	for _, tc := range [][3]string{
		{"0.0.0.0:7101", "10.0.0.1:7001", "10.0.0.1:7101"},
		{"[::]:7101", "us.example:7001", "us.example:7101"},
		{"10.0.0.2:7101", "10.0.0.1:7001", "10.0.0.2:7101"},
		{"0.0.0.0:7101", "0.0.0.0:7001", "0.0.0.0:7101"},
		{"", "10.0.0.1:7001", ""},
	} {
		if got := reachable(tc[0], tc[1]); got != tc[2] {
			t.Errorf("%v: %s", tc, got)
		}
	}
}

// TestDecode: metrics become what Prometheus stores of them.
func TestDecode(t *testing.T) {
	got, err := decode(strings.NewReader(`# TYPE a counter
a{x="y"} 3
# TYPE h histogram
h_bucket{le="0.1"} 1
h_bucket{le="+Inf"} 2
h_sum 3
h_count 2
# TYPE g gauge
g NaN
g{b="c"} -1
u 5
`))
	want := []doctor.Sample{
		{Metric: "a", Labels: map[string]string{"x": "y"}, Value: 3},
		{Metric: "g", Labels: map[string]string{"b": "c"}, Value: -1},
		{Metric: "h_bucket", Labels: map[string]string{"le": "+Inf"}, Value: 2},
		{Metric: "h_bucket", Labels: map[string]string{"le": "0.1"}, Value: 1},
		{Metric: "h_count", Labels: map[string]string{}, Value: 2},
		{Metric: "h_sum", Labels: map[string]string{}, Value: 3},
		{Metric: "u", Labels: map[string]string{}, Value: 5},
	}
	slices.SortFunc(got, func(a, b doctor.Sample) int {
		return strings.Compare(a.Metric+a.Labels["le"], b.Metric+b.Labels["le"])
	})
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\ngot  %v\nwant %v", err, got, want)
	}
	if _, err := decode(strings.NewReader("{\n")); err == nil {
		t.Error("no metrics are taken")
	}
	if _, err := decode(strings.NewReader(strings.Repeat("# x\n", maxMetrics/4+1))); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Error(err)
	}
}

// TestPatience: a process that answers too late is silent.
func TestPatience(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := metrics(ctx, s.Client(), s.URL)
	if _, silent := errors.AsType[*silentError](err); !silent {
		t.Error(err)
	}
}

// FuzzDecode: nothing that a process tells breaks the doctor.
func FuzzDecode(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add("# TYPE h histogram\nh_bucket{le=\"+Inf\"} 2\nh_sum 3\nh_count 2\nsamya_site_claims 1\n")
	f.Add("samya_site_peers_connected 2\nsamya_site_mode{mode=\"star\"} 1\nprocess_start_time_seconds 1e9\n")
	f.Fuzz(func(t *testing.T, text string) {
		samples, err := decode(strings.NewReader(text))
		if err != nil {
			return
		}
		d := doctor.NewDiagnosis()
		for i := range 2 {
			o := doctor.Observation{Process: doctor.Process{Job: doctor.JobSite, Instance: "us", State: doctor.Answers}, Metrics: samples}
			if err := d.Add(doctor.Look{At: time.Unix(int64(i), 0), Cluster: "prod", Observations: []doctor.Observation{o}}); err != nil {
				return
			}
		}
		if _, err := d.Report(); err != nil {
			t.Error(err)
		}
	})
}
