// Package httpapitest has a fake app manager for tests of its clients: the HTTP API on
// top of a counter for each entity. It is no cluster, so nothing waits, and it is for
// tests only.
package httpapitest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/apierr/refuse"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/name"
)

// Manager is a fake app manager with a single site. The zero value is not usable; use
// [New]. Its fields may be set before the first request.
type Manager struct {
	// SiteName is the name of its site.
	SiteName string
	// Intercept, if set, sees every acquire and release and may answer in place of the
	// manager. execute carries the request out; the error of Intercept is the answer.
	Intercept func(op string, r httpapi.Request, execute func() error) error
	// Forgetful makes it execute a repeated request id again: a bug.
	Forgetful bool
	// Boundless makes it grant above the limit: a bug.
	Boundless bool
	// Flat makes it charge nothing above the entity asked for: a bug.
	Flat bool
	// Missing are sites that apply no change of a limit. While there are any, a limit may
	// be exceeded by 7.
	Missing []string
	// Torn are entities of which no read is a consistent cut.
	Torn []string

	// EUBuild is the newest version that the build of the site eu speaks; 1 at first.
	EUBuild uint32
	// Stale is how many lists after a change of a member are of before it.
	Stale int
	// Changing is how many changes of members are refused because another is under way.
	Changing int

	mu             sync.Mutex
	version        uint32
	entities       map[string]*entity
	requests       []string
	mode           httpapi.Mode
	membersVersion uint64
	seats          map[string]*seat
	// before is the list told last.
	before   httpapi.Members
	forecast string
	looks    uint64 // at partitions
}

type entity struct {
	httpapi.Entity
	acquired int64
	seen     map[string]httpapi.Moved
}

// New returns a fake app manager without entities.
func New() *Manager {
	return &Manager{SiteName: "us", EUBuild: 1, entities: make(map[string]*entity)}
}

// Create makes an entity.
func (m *Manager) Create(entityName string, limit int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entities[entityName] = &entity{
		Entity: httpapi.Entity{Name: entityName, Limit: limit, Generation: 1, Version: 1},
		seen:   make(map[string]httpapi.Moved),
	}
}

// Acquired returns how many tokens of the entity are out.
func (m *Manager) Acquired(entityName string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entities[entityName].acquired
}

// Requests returns the requests seen, each as "METHOD path?query".
func (m *Manager) Requests() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// RoundTrip lets the manager be a client's transport, without a network.
func (m *Manager) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	recorder := httptest.NewRecorder()
	m.ServeHTTP(recorder, r)
	return recorder.Result(), nil
}

// ServeHTTP answers as an app manager does.
func (m *Manager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	m.requests = append(m.requests, r.Method+" "+r.URL.String())
	m.mu.Unlock()
	if entityName, ok := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/v1/entities/"), ":watch"); ok {
		m.watch(w, entityName)
		return
	}
	answer, err := m.route(r)
	if err != nil {
		apierr.WriteProblem(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// The recorder and the connection of a test take whatever is written.
	_ = json.NewEncoder(w).Encode(answer)
}

func (m *Manager) route(r *http.Request) (any, error) {
	path, isEntity := strings.CutPrefix(r.URL.Path, "/v1/entities/")
	entityName, op, isMove := strings.Cut(path, ":")
	switch {
	case r.URL.Path == "/v1/sites":
		return httpapi.Sites{Cluster: "demo", AnsweredBy: "am-us", Sites: []httpapi.Site{
			{Name: "eu", Region: "eu-west", Address: "127.0.0.1:7002", Health: "unreachable", OldestVersion: 3, NewestVersion: 4, Refusal: "the build of site eu is too new"},
			{Name: m.SiteName, Region: "us-east", Address: "127.0.0.1:7001", Health: "serving", RoundTripMS: new(0.25), OldestVersion: 1, NewestVersion: 2},
		}}, nil
	case strings.HasPrefix(r.URL.Path, "/v1/leases"):
		return m.ofLeases(r)
	case strings.HasPrefix(r.URL.Path, "/v1/members"):
		return m.ofMembers(r)
	case r.URL.Path == "/v1/mode":
		return m.ofMode(r)
	case r.URL.Path == "/v1/version":
		return m.ofVersion(r)
	case r.URL.Path == "/v1/sites:inspect":
		return m.ofInspect(r)
	case r.URL.Path == "/v1/forecast":
		return m.ofForecast(r)
	case r.URL.Path == "/v1/entities" && r.Method == http.MethodPost:
		return m.create(r)
	case r.URL.Path == "/v1/entities":
		return m.list(r)
	case isEntity && op == "move":
		return m.reparent(r, entityName)
	case isEntity && op == "cut":
		return m.cut(entityName)
	case isEntity && op == "reconcile":
		return m.reconcile(r, entityName)
	case isEntity && isMove:
		return m.move(r, entityName, op)
	case isEntity:
		return m.one(r, entityName)
	}
	return nil, apierr.New(apierr.RouteNotFound, "no resource %s", r.URL.Path)
}

// ofMode reads or changes the mode; the site eu does not answer.
func (m *Manager) ofMode(r *http.Request) (any, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.Method == http.MethodGet {
		us := httpapi.SiteMode{
			Site: m.SiteName, Protocol: cmp.Or(m.mode.Protocol, "majority"), Version: m.mode.Version,
			Configured: "majority", Known: true,
		}
		return httpapi.ModeStatus{Mode: m.mode, Sites: []httpapi.SiteMode{{Site: "eu"}, us}}, nil
	}
	var body struct {
		Protocol        string `json:"protocol"`
		ExpectedVersion uint64 `json:"expected_version"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, apierr.Wrap(apierr.MalformedJSON, err)
	}
	if err := name.Mode("protocol", body.Protocol); err != nil {
		return nil, apierr.FromName(err)
	}
	if body.ExpectedVersion != 0 && body.ExpectedVersion != m.mode.Version {
		return nil, apierr.New(apierr.VersionMismatch, "version %d expected, it is %d", body.ExpectedVersion, m.mode.Version)
	}
	m.mode = httpapi.Mode{Protocol: body.Protocol, Version: m.mode.Version + 1}
	return m.mode, nil
}

// ofVersion reads or raises the version of the cluster.
func (m *Manager) ofVersion(r *http.Request) (any, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := max(1, m.version)
	if r.Method == http.MethodGet {
		return httpapi.VersionStatus{Version: httpapi.Version{Version: now}, Complete: true, Sites: []httpapi.SiteVersion{
			{Site: "eu", Version: now, Oldest: 1, Newest: m.EUBuild, Build: "samya v1", Known: true},
			{Site: m.SiteName, Version: now, Oldest: 1, Newest: 2, Build: "samya v2", Known: true},
		}}, nil
	}
	var body httpapi.Version
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, apierr.Wrap(apierr.MalformedJSON, err)
	}
	switch {
	case body.Version != now+1:
		return nil, apierr.New(apierr.VersionMismatch, "the cluster is of version %d, which can be raised to %d alone", now, now+1)
	case body.Version > m.EUBuild:
		return nil, apierr.New(apierr.VersionMismatch, "the cluster stays at version %d: site eu has a build that speaks version 1 alone", now)
	}
	m.version = body.Version
	return body, nil
}

// ofForecast reads or changes the forecasting model; the site eu does not answer, unless
// the model is "none".
func (m *Manager) ofForecast(r *http.Request) (any, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.Method == http.MethodPut {
		var body struct {
			Model string `json:"model"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			return nil, apierr.Wrap(apierr.MalformedJSON, err)
		}
		if err := name.Forecast("model", body.Model); err != nil {
			return nil, apierr.FromName(err)
		}
		m.forecast = body.Model
	}
	eu := httpapi.SiteForecast{Site: "eu", Problem: `site "eu" cannot be reached; nothing was done`}
	us := httpapi.SiteForecast{Site: m.SiteName, Model: cmp.Or(m.forecast, "auto"), Configured: "auto", Known: true}
	if m.forecast == "none" {
		eu = us
		eu.Site = "eu"
	}
	return httpapi.ForecastStatus{Complete: eu.Known, Sites: []httpapi.SiteForecast{eu, us}}, nil
}

func (m *Manager) create(r *http.Request) (any, error) {
	var body httpapi.Entity
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, apierr.Wrap(apierr.MalformedJSON, err)
	}
	m.mu.Lock()
	exists, orphan := m.entities[body.Name] != nil, body.Parent != "" && m.entities[body.Parent] == nil
	m.mu.Unlock()
	switch {
	case exists:
		return nil, refuse.Exists(body.Name)
	case orphan:
		return nil, refuse.NoParent(body.Name, body.Parent)
	}
	m.Create(body.Name, body.Limit)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entities[body.Name].Parent = body.Parent
	return m.seen(m.entities[body.Name]), nil
}

// list returns pages of two entities, so that tests see several pages.
func (m *Manager) list(r *http.Request) (any, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := r.URL.Query()
	var page httpapi.Page
	for _, e := range m.entities {
		if strings.HasPrefix(e.Name, q.Get("prefix")) && e.Name > q.Get("page_token") {
			page.Entities = append(page.Entities, m.seen(e))
		}
	}
	slices.SortFunc(page.Entities, func(a, b httpapi.Entity) int { return strings.Compare(a.Name, b.Name) })
	if len(page.Entities) > 2 {
		page.Entities = page.Entities[:2]
		page.NextPageToken = page.Entities[1].Name
	}
	return page, nil
}

func (m *Manager) one(r *http.Request, entityName string) (any, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entities[entityName]
	if e == nil {
		return nil, apierr.NotFound(entityName)
	}
	switch r.Method {
	case http.MethodGet:
		return httpapi.Status{
			Entity: m.seen(e), Available: e.Limit - e.acquired, Acquired: e.acquired, Complete: true, Consistent: !slices.Contains(m.Torn, e.Name),
			MayExceedBy: 7 * int64(min(1, len(m.Missing))),
			Shares:      []httpapi.Share{{Site: m.SiteName, Left: e.Limit - e.acquired, Net: e.acquired, Known: true, Redistributions: 3}},
		}, nil
	case http.MethodPatch:
		var body httpapi.Change
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			return nil, apierr.Wrap(apierr.MalformedJSON, err)
		}
		if body.ExpectedVersion != 0 && body.ExpectedVersion != e.Version {
			return nil, apierr.New(apierr.VersionMismatch, "version %d expected, it is %d", body.ExpectedVersion, e.Version)
		}
		e.Limit = body.Limit
		e.Version++
		changed := httpapi.Changed{Entity: m.seen(e), MissingSites: append([]string{}, m.Missing...)}
		switch {
		case len(m.Missing) > 0:
			changed.MayExceedBy = 7
		case !body.WaitApplied:
			changed.MissingSites = []string{"eu"}
		}
		return changed, nil
	case http.MethodDelete:
		return struct{}{}, m.remove(e, r.URL.Query().Get("subtree") == "true")
	}
	return nil, apierr.New(apierr.MethodNotAllowed, "%s is not served", r.Method)
}

func (m *Manager) move(r *http.Request, entityName, op string) (any, error) {
	var body httpapi.Request
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, apierr.Wrap(apierr.MalformedJSON, err)
	}
	if _, ofLease := body.Lease.(string); !ofLease {
		if err := name.Tokens("tokens", body.Tokens); err != nil {
			return nil, err
		}
	}
	var moved httpapi.Moved
	execute := func() error {
		var err error
		moved, err = m.execute(entityName, op, body)
		return err
	}
	var err error
	if m.Intercept != nil {
		err = m.Intercept(op, body, execute)
	} else {
		err = execute()
	}
	return moved, err
}

func (m *Manager) execute(entityName, op string, body httpapi.Request) (httpapi.Moved, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entities[entityName]
	if e == nil {
		return httpapi.Moved{}, apierr.NotFound(entityName)
	}
	if body.RequestID == "" {
		body.RequestID = "made-up"
	} else if first, ok := e.seen[body.RequestID]; ok && !m.Forgetful {
		return first, nil
	}
	switch op {
	case "acquire":
		if err := m.lacking(e, body.Tokens); err != nil && !m.Boundless {
			return httpapi.Moved{}, err
		}
		m.charge(e, body.Tokens)
	case "release":
		m.charge(e, -body.Tokens)
	default:
		return httpapi.Moved{}, apierr.New(apierr.RouteNotFound, "no call %q", op)
	}
	moved := httpapi.Moved{Tokens: body.Tokens, RequestID: body.RequestID, Site: m.SiteName, Left: e.Limit - e.acquired}
	switch l := body.Lease.(type) {
	case map[string]any:
		ttl, err := time.ParseDuration(fmt.Sprint(l["ttl"]))
		if err != nil {
			return httpapi.Moved{}, apierr.Invalid("lease.ttl", "bad")
		}
		holder, _ := l["holder"].(string)
		moved.Lease = &httpapi.Lease{
			Name: m.SiteName + "/" + body.RequestID, Entity: entityName, Tokens: body.Tokens, RemainingMS: ttl.Milliseconds(), Holder: holder,
		}
	case string:
		moved.Parked = !strings.HasPrefix(l, m.SiteName+"/")
	}
	if body.DryRun {
		m.charge(e, -body.Tokens)
		return moved, nil
	}
	e.seen[body.RequestID] = moved
	return moved, nil
}

// ofLeases answers about the only lease, which holds 3 tokens.
func (m *Manager) ofLeases(r *http.Request) (any, error) {
	lease := httpapi.Lease{Name: m.SiteName + "/one", Entity: "acme/vm", Tokens: 3, RemainingMS: 30000, Holder: "job-7"}
	if r.URL.Path == "/v1/leases" {
		p := httpapi.LeasePage{Leases: []httpapi.Lease{}, Missing: []string{"eu"}}
		if h := r.URL.Query().Get("holder"); h == "" || h == lease.Holder {
			p.Leases = append(p.Leases, lease)
		}
		return p, nil
	}
	var body struct {
		Lease     string `json:"lease"`
		TTL       string `json:"ttl"`
		Tokens    int64  `json:"tokens"`
		RequestID string `json:"request_id"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, apierr.Wrap(apierr.MalformedJSON, err)
	}
	if body.Lease != lease.Name {
		return nil, apierr.New(apierr.LeaseNotFound, "no lease %q", body.Lease)
	}
	switch r.URL.Path {
	case "/v1/leases:renew":
		if ttl, err := time.ParseDuration(body.TTL); err == nil {
			lease.RemainingMS = ttl.Milliseconds()
		}
		return lease, nil
	case "/v1/leases:commit":
		return httpapi.Committed{
			Lease: lease.Name, Tokens: body.Tokens, Returned: lease.Tokens - body.Tokens, RequestID: body.RequestID, Site: m.SiteName,
		}, nil
	}
	return nil, apierr.New(apierr.RouteNotFound, "no resource %s", r.URL.Path)
}

// watch tells a state of an entity, and then that it is deleted.
func (m *Manager) watch(w http.ResponseWriter, entityName string) {
	s := httpapi.State{ResumeToken: "t1"}
	s.Name, s.Limit, s.Available, s.Acquired, s.Version = entityName, 5000, 4970, 30, 1
	e := json.NewEncoder(w)
	_ = e.Encode(s)
	_ = e.Encode(httpapi.State{Status: httpapi.Status{Entity: httpapi.Entity{Name: entityName}}, Deleted: true, ResumeToken: "t2"})
}
