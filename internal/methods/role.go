package methods

// Role is how much a caller may do. Each role up to Admin includes the roles before it.
type Role uint8

// The roles.
const (
	// Nobody may only ask whether a process is healthy.
	Nobody Role = iota
	// Viewer reads.
	Viewer
	// Client acquires and releases tokens.
	Client
	// Operator creates, changes, moves and deletes entities.
	Operator
	// Admin changes how the cluster works.
	Admin
	// Proxy asks whether requests may pass, and does nothing else. Of the other roles, all
	// from Client on include it.
	Proxy
)

// May reports whether a caller of a role may call the methods of a rule.
func (r Role) May(rule Rule) bool {
	if r == Proxy {
		return rule.Proxies
	}
	return r >= rule.Least
}

// AtMost returns the lower of two roles: what both may do.
func (r Role) AtMost(most Role) Role {
	if r != Proxy && most != Proxy {
		return min(r, most)
	}
	if other := min(r, most); other == Proxy || other >= Client {
		return Proxy
	}
	return Nobody
}

// roleNames are the names of the roles, in lower case.
var roleNames = []string{"nobody", "viewer", "client", "operator", "admin", "proxy"}

// String returns the role in lower case.
func (r Role) String() string {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return "unknown"
}
