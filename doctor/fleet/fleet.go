package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/samya-db/samya/doctor"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/httpapi"
)

// patience bounds the time until an answer. An overloaded site takes less to tell
// metrics.
const patience = 5 * time.Second

// Fleet are the processes of a cluster. A Fleet is not safe for concurrent use.
type Fleet struct {
	// AppManagers are HTTP addresses of app managers, Sites of sites that app managers
	// may not tell of.
	AppManagers, Sites []string
	// Connect returns an address with the scheme, and the transport; nil for the default.
	Connect func(addr string) (url string, transport http.RoundTripper, err error)
	// ConnectSite is Connect for a site of a name; nil: Connect.
	ConnectSite func(name, addr string) (url string, transport http.RoundTripper, err error)
	// Own is the app manager that looks at its own cluster; nil for none.
	Own *Own

	// cluster and members are the last answer of an app manager.
	cluster string
	members []httpapi.Site
	names   map[string]string
}

// Own is an app manager that looks at its cluster itself.
type Own struct {
	// Name and Region are those of the app manager, Instance the host:port of its metrics.
	Name, Region string
	Instance     func() string
	// Sites lists the member sites.
	Sites func(context.Context) (httpapi.Sites, error)
	// Metrics has the app manager's metrics.
	Metrics prometheus.Gatherer
}

// own looks at the own app manager.
func (f *Fleet) own(ctx context.Context) doctor.Observation {
	p := doctor.Process{Job: doctor.JobAppMgr, Name: f.Own.Name, Region: f.Own.Region, Instance: f.Own.Instance()}
	if told, err := f.Own.Sites(ctx); err == nil {
		f.cluster, f.members = told.Cluster, told.Sites
	}
	samples, err := gathered(f.Own.Metrics)
	return observed(p, samples, err)
}

// unknownRegion stands in place of a region that nobody tells.
const unknownRegion = "unknown"

// Look looks at all processes at a time. A silent app manager is an
// observation; the error is that of a malformed address.
func (f *Fleet) Look(ctx context.Context, now time.Time) (doctor.Look, error) {
	look := doctor.Look{At: now}
	if f.names == nil {
		f.names = make(map[string]string)
	}
	managers := make([]manager, len(f.AppManagers))
	for i, addr := range f.AppManagers {
		base, transport, err := f.Connect(addr)
		if err != nil {
			return look, err
		}
		if managers[i].client, err = httpapi.New(base, transport); err != nil {
			return look, fmt.Errorf("app manager: %w", err)
		}
		managers[i].http = &http.Client{Transport: transport}
	}
	each(len(managers), func(i int) { managers[i].ask(ctx) })
	for i := range managers {
		m := &managers[i]
		p := doctor.Process{Job: doctor.JobAppMgr, Region: unknownRegion, Instance: host(m.client.Addr())}
		if m.err == nil {
			f.cluster, f.members = m.told.Cluster, m.told.Sites
			f.names[p.Instance] = m.told.AnsweredBy
		}
		p.Name = f.names[p.Instance]
		look.Observations = append(look.Observations, observed(p, m.metrics, m.metricsErr))
	}
	if f.Own != nil {
		look.Observations = append(look.Observations, f.own(ctx))
	}
	look.Cluster = f.cluster
	sites := f.sites()
	if len(sites) == 0 {
		look.Observations = append(look.Observations, unheard(managers)...)
	}
	seen := make([]doctor.Observation, len(sites))
	each(len(sites), func(i int) { seen[i] = f.site(ctx, sites[i]) })
	look.Observations = append(look.Observations, seen...)
	return look, nil
}

// manager is an app manager with answers.
type manager struct {
	client     *httpapi.Client
	http       *http.Client
	told       httpapi.Sites
	err        error
	metrics    []doctor.Sample
	metricsErr error
}

func (m *manager) ask(ctx context.Context) {
	m.metrics, m.metricsErr = metrics(ctx, m.http, m.client.Addr())
	if _, silent := errors.AsType[*silentError](m.metricsErr); silent {
		m.err = m.metricsErr
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	m.told, m.err = m.client.ListSites(ctx)
}

// unheard stands for the sites of which no app manager tells. If an app manager reaches
// none, the sites are silent; if the app manager does not tell, nothing is known of them.
func unheard(managers []manager) (all []doctor.Observation) {
	for i := range managers {
		m := &managers[i]
		if _, silent := errors.AsType[*silentError](m.err); m.err == nil || silent {
			continue
		}
		p := doctor.Process{
			Job: doctor.JobSite, Region: unknownRegion, Instance: "of unknown address", State: doctor.Unknown,
			Problem: fmt.Sprintf("app manager %s: list the sites: %v", host(m.client.Addr()), m.err),
		}
		if e, ok := errors.AsType[*apierr.Error](m.err); ok && e.Reason == apierr.SiteUnavailable {
			p.State = doctor.Silent
		}
		return []doctor.Observation{{Process: p}}
	}
	return nil
}

// sites are the sites that app managers told of, and the sites given.
func (f *Fleet) sites() []httpapi.Site {
	all := slices.Clone(f.members)
	for i := range all {
		all[i].HTTPAddress = reachable(all[i].HTTPAddress, all[i].Address)
	}
	for _, addr := range f.Sites {
		if !slices.ContainsFunc(all, func(s httpapi.Site) bool { return s.HTTPAddress == host(addr) }) {
			all = append(all, httpapi.Site{HTTPAddress: addr})
		}
	}
	return all
}

// reachable returns the address of a site's metrics. A site that listens at all
// addresses tells none; then the host is that of the gRPC API.
func reachable(http, grpc string) string {
	h, port, err := net.SplitHostPort(http)
	if ip := net.ParseIP(h); err != nil || ip == nil || !ip.IsUnspecified() {
		return http
	}
	h, _, err = net.SplitHostPort(grpc)
	if ip := net.ParseIP(h); err != nil || ip != nil && ip.IsUnspecified() {
		return http
	}
	return net.JoinHostPort(h, port)
}

// site looks at a site.
func (f *Fleet) site(ctx context.Context, s httpapi.Site) doctor.Observation {
	p := doctor.Process{
		Job: doctor.JobSite, Name: s.Name, Region: cmp.Or(s.Region, unknownRegion), Instance: cmp.Or(host(s.HTTPAddress), s.Name),
	}
	if s.HTTPAddress == "" {
		if p.State, p.Problem = doctor.Unknown, "no app manager knows where it serves them"; s.Health == "unreachable" {
			p.State, p.Problem = doctor.Silent, "it has not been heard of"
		}
		return doctor.Observation{Process: p}
	}
	connect := f.ConnectSite
	if connect == nil || s.Name == "" {
		connect = func(_, addr string) (string, http.RoundTripper, error) { return f.Connect(addr) }
	}
	base, transport, err := connect(s.Name, s.HTTPAddress)
	if err != nil {
		p.State, p.Problem = doctor.Unknown, err.Error()
		return doctor.Observation{Process: p}
	}
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	samples, err := metrics(ctx, &http.Client{Transport: transport}, base)
	return observed(p, samples, err)
}

// observed is a process with metrics, or with the reason for none.
func observed(p doctor.Process, samples []doctor.Sample, err error) doctor.Observation {
	p.State = doctor.Answers
	if err != nil {
		p.State, p.Problem = doctor.Refuses, err.Error()
		if _, silent := errors.AsType[*silentError](err); silent {
			p.State = doctor.Silent
		}
	}
	return doctor.Observation{Process: p, Metrics: samples}
}

// silentError says that a process did not answer.
type silentError struct{ err error }

func (e *silentError) Error() string { return e.err.Error() }
func (e *silentError) Unwrap() error { return e.err }

// metrics asks a process for metrics. The error is a silentError if no answer comes.
func metrics(ctx context.Context, client *http.Client, base string) ([]doctor.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("ask for the metrics: %w", err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, &silentError{silence(err)}
	}
	defer func() { _ = resp.Body.Close() }() // all of use was read
	if resp.StatusCode != http.StatusOK {
		_, _ = io.CopyN(io.Discard, resp.Body, 1<<10)
		return nil, fmt.Errorf("ask for the metrics: the answer is %s", resp.Status)
	}
	return decode(resp.Body)
}

// silence returns the reason for no answer, without the request.
func silence(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s", patience)
	}
	return fmt.Errorf("no answer: %w", err)
}

// host returns an address without a scheme.
func host(addr string) string {
	_, rest, ok := strings.Cut(addr, "://")
	if !ok {
		return addr
	}
	return rest
}

// each calls f with 0 to n-1 side by side.
func each(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}
