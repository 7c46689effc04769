package httpapitest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/name"
)

// seat is the seat of a site. What was asked of it is done at the third look after it,
// except for a site named "never".
type seat struct {
	httpapi.Member
	looks int
	// goes changes the site, and what the list says, at a look; nil if nothing was asked.
	goes func(s *seat, all *httpapi.Members)
}

// ofMembers lists the members, or changes one.
func (m *Manager) ofMembers(r *http.Request) (any, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seats == nil {
		m.seats = map[string]*seat{
			"eu":       {Member: httpapi.Member{Name: "eu", State: "member", Knows: true, Region: "eu-west", Address: "127.0.0.1:7002", Health: "unreachable"}},
			m.SiteName: {Member: httpapi.Member{Name: m.SiteName, State: "member", Knows: true, Region: "us-east", Address: "127.0.0.1:7001", Health: "serving"}},
		}
		m.membersVersion = 1
	}
	var body struct {
		Name   string `json:"name"`
		Heir   string `json:"heir"`
		Cancel bool   `json:"cancel"`

		Survivors []string `json:"survivors"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil && !errors.Is(err, io.EOF) {
		return nil, apierr.Wrap(apierr.MalformedJSON, err)
	}
	site, drain := strings.CutSuffix(strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/v1/members"), "/"), ":drain")
	switch {
	case r.URL.Path == "/v1/members:recover":
		return httpapi.Recovery{Sites: body.Survivors}, nil
	case r.Method == http.MethodGet && m.Stale > 0 && m.before.Version != 0 && m.before.Version < m.membersVersion:
		m.Stale--
		return m.before, nil
	case r.Method == http.MethodGet:
		m.before = m.listMembers()
		return m.before, nil
	case site == "":
		return m.addMember(body.Name)
	case m.seats[site] == nil:
		return nil, apierr.New(apierr.MemberNotFound, "the cluster has no site %q", site)
	case m.Changing > 0:
		m.Changing--
		return nil, apierr.New(apierr.MembersChanging, "12 entities have to adopt the new voters of the last change first; nothing was done")
	case drain:
		return m.drainMember(m.seats[site], body.Heir, body.Cancel)
	}
	return m.removeMember(m.seats[site], r.URL.Query().Get("lost") == "true")
}

func (m *Manager) listMembers() httpapi.Members {
	all := httpapi.Members{Version: m.membersVersion, AnsweredBy: "site/" + m.SiteName, Members: []httpapi.Member{}}
	for _, s := range m.seats {
		if s.goes != nil {
			s.looks++
			s.goes(s, &all)
		}
		all.Members = append(all.Members, s.Member)
	}
	m.membersVersion = all.Version
	slices.SortFunc(all.Members, func(a, b httpapi.Member) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// changed is the answer to a change of a seat.
func (m *Manager) changed(s *seat) (any, error) {
	return httpapi.ChangedMember{Member: s.Member, Version: m.membersVersion}, nil
}

func (m *Manager) addMember(site string) (any, error) {
	if err := name.Site("name", site); err != nil {
		return nil, apierr.FromName(err)
	}
	s := m.seats[site]
	if s == nil {
		s = &seat{
			Member: httpapi.Member{Name: site, State: "joining", Health: "unknown", WaitsFor: "the site to start, with an address to join"},
			goes:   joins,
		}
		m.seats[site] = s
	}
	return m.changed(s)
}

func joins(s *seat, all *httpapi.Members) {
	switch {
	case s.looks == 1:
	case s.looks == 2 || s.Name == "never":
		s.State, s.Knows, s.Health, s.WaitsFor = "member", true, "serving", "eu to hear of it"
		all.Version, all.Behind, all.WaitsFor = max(2, all.Version), 12, "12 entities to adopt the new voters"
	default:
		s.WaitsFor, s.goes = "", nil
		all.Version = max(2, all.Version)
	}
}

func (m *Manager) drainMember(s *seat, heir string, cancel bool) (any, error) {
	switch {
	case s.State == "lost", s.State == "joining":
		return nil, apierr.New(apierr.MemberState, "site %q is %s", s.Name, s.State)
	case cancel:
		s.State, s.Heir, s.WaitsFor, s.Drain, s.goes = "member", "", "", nil, nil
		m.membersVersion++
	case s.State == "member":
		s.State, s.Heir, s.WaitsFor, s.looks = "draining", cmp.Or(heir, m.SiteName), "the site to hear that it drains", 0
		s.goes = drains
		m.membersVersion++
	}
	return m.changed(s)
}

func drains(s *seat, _ *httpapi.Members) {
	switch {
	case s.looks == 1:
		s.WaitsFor, s.Drain = "213 entities to be handed over to "+s.Heir, &httpapi.Drain{Entities: 213, Unclear: []string{}}
	case s.looks == 2 || s.Name == "never":
		s.WaitsFor, s.Drain = "requests of the last 4m10s to be forgotten", &httpapi.Drain{RecordsMS: 250_000, Unclear: []string{}}
	default:
		s.State, s.WaitsFor, s.Drain, s.Health, s.goes = "gone", "", nil, "unknown", nil
	}
}

func (m *Manager) removeMember(s *seat, lost bool) (any, error) {
	switch {
	case lost && s.State == "joining", !lost && s.State != "joining" && s.State != "gone":
		return nil, apierr.New(apierr.MemberState, "site %q is a %s", s.Name, s.State)
	case lost && s.State != "lost":
		s.State, s.Health, s.Heir, s.WaitsFor, s.Drain, s.looks, s.goes = "lost", "unknown", "", "", nil, 0, isLost
		m.membersVersion++
	case !lost:
		s.State, s.WaitsFor, s.goes = "gone", "", nil
	}
	return m.changed(s)
}

// isLost has the entities adopt voters without the site.
func isLost(s *seat, all *httpapi.Members) {
	if s.looks < 3 || s.Name == "never" {
		all.Behind = 12
		all.WaitsFor = fmt.Sprintf("%d entities to adopt the new voters", all.Behind)
		return
	}
	s.goes = nil
}
