package methods

// Role is how much a caller may do. Each role includes the roles before it.
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
)

// roleNames are the names of the roles, in lower case.
var roleNames = []string{"nobody", "viewer", "client", "operator", "admin"}

// String returns the role in lower case.
func (r Role) String() string {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return "unknown"
}
