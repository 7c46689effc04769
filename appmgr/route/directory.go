package route

// SiteInfo is where a site can be reached.
type SiteInfo struct {
	// Name is the site's name.
	Name string
	// Region is where it stands.
	Region string
	// Address is the host:port of its gRPC listener.
	Address string
}

// Directory tells where sites can be reached. It does not tell which sites are members:
// only a site knows.
type Directory interface {
	// Sites returns the sites heard of.
	Sites() []SiteInfo
	// Changed returns a channel that is closed at the next change of Sites.
	Changed() <-chan struct{}
}
