package main

// group is a group of the navigation.
type group struct {
	title string
	pages []string // sources
}

// rest is the title of the group of pages that no other group names.
const rest = "More"

// groups is the navigation, by what readers are after. A page that is missing here comes
// into the group rest.
var groups = []group{
	{"Start", []string{"docs/quickstart.md", "docs/install.md", "docs/faq.md"}},
	{"Concepts", []string{"docs/concepts.md", "docs/hierarchies.md", "docs/rates.md", "docs/comparison.md"}},
	{"Use", []string{
		"docs/api.md", httpReference, "docs/clients.md", "docs/client.md", "clients/typescript/README.md",
		"clients/python/README.md", "docs/envoy.md", "docs/migrate-ratelimit.md",
	}},
	{"Operate", []string{
		"docs/console.md", "docs/deploy-local.md", "docs/deploy-compose.md", "docs/deploy-kubernetes.md", "deploy/helm/samya/README.md",
		"docs/deploy-google.md", "docs/deploy-aws.md", "terraform/README.md", "terraform/reference.md",
		"docs/configuration.md", "docs/security.md", "docs/sizing.md", "docs/members.md", "docs/nodes.md",
		"docs/upgrades.md", "docs/backup.md", "docs/runbooks.md",
	}},
	{"Internals", []string{
		"docs/architecture.md", "docs/protocol.md", "docs/partitions.md", "docs/data.md", "docs/kvpart.md", "docs/forecasting.md",
		"docs/testing.md", "docs/bugs.md", "CONTRIBUTING.md",
	}},
	{"Measurements", []string{"docs/performance.md", "docs/replay.md"}},
	{"Papers", []string{
		"docs/papers/experiments.md", "docs/papers/experiments/report.md", "docs/papers/deviations.md", "docs/papers/forecasting.md",
		"docs/papers/replay.md", "docs/papers/repartitioning.md", "docs/papers/partitioning.md", "docs/papers/early-scheduling.md",
		"docs/papers/libra.md",
	}},
	{"Changes", []string{"CHANGELOG.md"}},
}

// titles are shorter titles for the navigation.
var titles = map[string]string{
	"CHANGELOG.md":                 "Changelog",
	"CONTRIBUTING.md":              "Contributing",
	"clients/python/README.md":     "Client for Python",
	"clients/typescript/README.md": "Client for TypeScript",
	"deploy/helm/samya/README.md":  "Helm chart",
	"terraform/README.md":          "Terraform",
	"terraform/reference.md":       "Terraform reference",
}
