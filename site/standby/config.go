package standby

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/replica/etcd"
)

// Config says which node of which site runs, and where to find the site's log.
type Config struct {
	// Site is the site's configuration, the same at all nodes but for addresses and data
	// directory.
	Site site.Config
	// Node is the node's name, unique among the nodes of the site: 1 to 63 lower-case
	// letters, digits and '-'.
	Node string
	// Etcd is where the log is.
	Etcd etcd.Config
	// TakeOver is how long the active node may give no sign of life before a standby takes
	// the place; 0: 1.5 s. At least 200 ms. The active node gives five signs in that time.
	TakeOver time.Duration
	// KeepHistory leaves etcd's compaction to etcd. Otherwise the active node compacts etcd
	// once a minute, all keys: without, the space of trimmed commits is never free.
	KeepHistory bool
	// AwaitLog keeps the node from beginning a log: it waits until another node has begun the
	// site's. Such a node may be started before the site goes over from its disk to etcd.
	AwaitLog bool
}

const (
	defaultTakeOver = 1500 * time.Millisecond
	leastTakeOver   = 200 * time.Millisecond
	// signsOfLife is how many signs of life an active node gives in Config.TakeOver.
	signsOfLife = 5
	// toldEvery is how often a node tells how far it is, and the active node trims the log.
	toldEvery = time.Second
	// askedEvery is how often a node looks for a log that another node has to begin.
	askedEvery = time.Second
	// compactedEvery is how often the active node compacts etcd.
	compactedEvery = time.Minute
)

// Validate checks all settings. The error names every field at fault.
func (c *Config) Validate() error {
	errs := []error{c.Site.Validate(), name.Site("node", c.Node)}
	if len(c.Etcd.Endpoints) == 0 || slices.Contains(c.Etcd.Endpoints, "") {
		errs = append(errs, &name.Error{Field: "etcd_endpoints", Problem: "at least one host:port is needed"})
	}
	if c.TakeOver != 0 && c.TakeOver < leastTakeOver {
		errs = append(errs, &name.Error{Field: "take_over", Problem: fmt.Sprintf("%v, at least %v", c.TakeOver, leastTakeOver)})
	}
	return errors.Join(errs...)
}
