package route

// SiteInfo is where a site can be reached.
type SiteInfo struct {
	// Name is the site's name.
	Name string
	// Region is where it stands.
	Region string
	// Address is the host:port of its gRPC listener.
	Address string
	// Node is the node that runs the site, and Term the take-over by which it does; unset
	// for a site of a single process.
	Node string
	Term int64
}

// Directory tells where sites can be reached. It does not tell which sites are members:
// only a site knows.
type Directory interface {
	// Sites returns the sites heard of, each once.
	Sites() []SiteInfo
	// Changed returns a channel that is closed at the next change of Sites.
	Changed() <-chan struct{}
}
