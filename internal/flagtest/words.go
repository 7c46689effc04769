package flagtest

// words are the names with a meaning so general that each command says in words of its own
// what it applies to.
var words = map[string]string{
	"dir":      "where the command writes: data, logs or certificates",
	"duration": "how long the command works",
	"entity":   "an entity, by name",
	"holder":   "holder of leases",
	"keep":     "leave what the command would remove",
	"out":      "what to write the result to",
	"plain":    "without what is there for convenience or speed",
	"policy":   "policy of redistributions, or of repartitioning",
	"replace":  "put new things in the place of old ones",
	"site":     "a site, by name",
	"strategy": "strategy of sites, or of repartitioning",
	"tokens":   "a number of tokens",
}

// banned are names that no command may have, with the name for their meaning.
var banned = map[string]string{
	"address":       "addr",
	"app-manager":   "app-managers",
	"args":          "site-settings",
	"chart":         "svg",
	"data-dir":      "data",
	"gossip-preset": "preset",
	"grpc-addr":     "grpc",
	"http-addr":     "http",
	"id":            "request-id",
	"jobs":          "workers",
	"key-file":      "gossip-key-file",
	"listen":        "grpc",
	"mode":          "protocol",
	"output":        "json",
	"plot":          "svg",
	"policies":      "only",
	"runs":          "rounds",
	"site-args":     "site-settings",
	"time":          "duration",
	"value":         "value-size",
	"wan":           "latency",
	"warm":          "warmup",
	"workloads":     "workload",
}
