package message

import "github.com/samya-db/samya/avantan"

// LeaveKind names the messages about a site that leaves the cluster.
type LeaveKind uint8

const (
	// LeaveAsk: the sender leaves, and asks whether anything is under way with it.
	LeaveAsk LeaveKind = iota + 1
	// LeaveClear: nothing is under way between the sender and the receiver, which leaves.
	LeaveClear
	// LeaveEmpty: the sender leaves and holds nothing. Its seat may become gone.
	LeaveEmpty
	// LeaveOut: the receiver has no place in the cluster any more: it is gone, or was
	// written off.
	LeaveOut
)

// Leave is a message about a site that leaves the cluster.
type Leave struct {
	Kind     LeaveKind
	From, To avantan.SiteID
	// Since is the instance of the catalogue that decided that the site leaves, or that it
	// is out.
	Since avantan.Instance
}
