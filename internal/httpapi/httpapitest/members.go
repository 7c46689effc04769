package httpapitest

import (
	"encoding/json"
	"net/http"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/name"
)

// ofMembers lists the members or adds one. A site added is a member at the third look
// after it, except for the site "never".
func (m *Manager) ofMembers(r *http.Request) (any, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.Method == http.MethodGet {
		all := httpapi.Members{Version: 1, AnsweredBy: "site/" + m.SiteName, Members: []httpapi.Member{
			{Name: "eu", State: "member", Knows: true, Region: "eu-west", Address: "127.0.0.1:7002", Health: "unreachable"},
			{Name: m.SiteName, State: "member", Knows: true, Region: "us-east", Address: "127.0.0.1:7001", Health: "serving"},
		}}
		if m.joiner == "" {
			return all, nil
		}
		m.told++
		joiner := m.joining()
		switch m.told {
		case 1:
		case 2:
			joiner.State, joiner.Knows, joiner.Health, joiner.WaitsFor = "member", true, "serving", "eu to hear of it"
			all.Version, all.Behind, all.WaitsFor = 2, 12, "12 entities to adopt the new voters"
		default:
			if m.joiner != "never" {
				all.Version, joiner.State, joiner.Knows, joiner.Health, joiner.WaitsFor = 2, "member", true, "serving", ""
			}
		}
		all.Members = append(all.Members, joiner)
		return all, nil
	}
	var body struct {
		Name string `json:"name"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, apierr.Wrap(apierr.MalformedJSON, err)
	}
	if err := name.Site("name", body.Name); err != nil {
		return nil, apierr.FromName(err)
	}
	m.joiner = body.Name
	return httpapi.ChangedMember{Member: m.joining(), Version: 1}, nil
}

// joining is the site added last as it joins.
func (m *Manager) joining() httpapi.Member {
	return httpapi.Member{Name: m.joiner, State: "joining", Health: "unknown", WaitsFor: "the site to start, with an address to join"}
}
