package httpapitest

import (
	"net/http"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/inspection"
)

// ofInspect tells the partitions of two sites; eu does not answer. With each call a
// second passes at the other site, in which its partitions serve requests.
func (m *Manager) ofInspect(r *http.Request) (any, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	us := inspected(m.SiteName, m.looks)
	m.looks++
	eu := inspection.Site{Site: "eu", Problem: `site "eu" cannot be reached; nothing was done`, Partitions: []inspection.Partition{}, Split: []inspection.Split{}}
	switch named := r.URL.Query().Get("site"); named {
	case "":
		return inspection.Status{Sites: []inspection.Site{eu, us}}, nil
	case m.SiteName:
		return inspection.Status{Complete: true, Sites: []inspection.Site{us}}, nil
	default:
		return nil, apierr.New(apierr.SiteUnavailable, "site %q cannot be reached; nothing was done", named)
	}
}

// inspected returns a site of four partitions after looks calls.
func inspected(site string, looks uint64) inspection.Site {
	return inspection.Site{
		Site: site, Known: true, UpMS: int64(7_830_000 + 1000*looks),
		Partitions: []inspection.Partition{
			{Entities: 2775, Operations: 1_610_402 + 700*looks, Queued: 3},
			{Entities: 2780, Operations: 1_498_120 + 200*looks},
			{Entities: 2770, Operations: 1_530_077 + 100*looks, Queued: 1},
			{Entities: 2776, Operations: 1_421_950},
		},
		Served: 5_952_021 + 980*looks, Cross: 108_528 + 20*looks, Passed: 12_034 + 5*looks, Imbalance: 1.063,
		Repartitioning: inspection.Repartitioning{
			On: true, Computed: 14 + looks, Applied: 5 + looks, Skipped: 9, Failed: 1, Moved: 8120 + 12*looks,
			Tracking: .05, LastCut: .0312, LastCutMS: 12.34,
			Pause: inspection.Pause{Count: 5 + looks, P50: 41.2, P99: 1020.6, Max: 2512},
		},
		Split: []inspection.Split{
			{Name: "acme/root", Left: []int64{1250, 1249, 1247, 1251}, Operations: 1_203_111 + 900*looks},
			{Name: "zoo", Left: []int64{7, 7, 6, 7}, Operations: 12},
		},
	}
}
