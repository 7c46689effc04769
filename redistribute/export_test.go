package redistribute

// The errors of Grants, which only tests tell apart.
var (
	ErrOverflow     = errOverflow
	ErrContribution = errContribution
)
