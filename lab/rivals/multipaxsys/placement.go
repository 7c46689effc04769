package multipaxsys

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/samya-db/samya/internal/wan"
)

const (
	// West is the region of Oregon, the paper's US-West1.
	West = "us"
	// Central is the region of Iowa.
	Central = "us-central"
	// East is the region of South Carolina.
	East = "us-east"
)

// replicaRegions are the regions of replicas, in the order in which they should
// lead.
var replicaRegions = []string{West, Central, East, "as", "eu"}

// clientRegions are the regions of the paper's clients.
var clientRegions = []string{"us", "as", "eu", "au", "sa"}

// inside are the round trips to the regions missing from Table 5, of the size
// measured between Google's regions. While Oregon leads, only the round trips
// within the US count: a round takes 58 ms.
var inside = map[string]map[string]time.Duration{
	Central: {West: 36e6, East: 30e6, "as": 160e6, "eu": 100e6, "au": 175e6, "sa": 145e6},
	East:    {West: 58e6, "as": 185e6, "eu": 88e6, "au": 198e6, "sa": 118e6},
}

// Places returns the regions of all its places: the places with clients, then its
// Servers.
func (s *System) Places() []string { return slices.Clone(s.regions) }

// Servers returns the regions of the replicas in places without clients.
func (s *System) Servers() []string { return slices.Clone(s.servers) }

// Network returns the round trips between all regions.
func (s *System) Network() *wan.Matrix { return s.network }

// extend adds the two regions within the US to a matrix with the paper's five.
func extend(base *wan.Matrix) (*wan.Matrix, error) {
	var text strings.Builder
	regions := base.Regions()
	for i, a := range regions {
		for _, b := range regions[i:] {
			fmt.Fprintf(&text, "%s,%s,%v\n", a, b, base.RoundTrip(a, b))
		}
	}
	for _, a := range []string{Central, East} {
		for _, b := range append(regions, East) {
			if d, known := inside[a][b]; known && (!slices.Contains(regions, a) || !slices.Contains(regions, b)) {
				fmt.Fprintf(&text, "%s,%s,%v\n", a, b, d)
			}
		}
	}
	m, err := wan.Parse(strings.NewReader(text.String()))
	if err != nil {
		return nil, fmt.Errorf("adding the regions of the replicas: %w", err)
	}
	return m, nil
}
