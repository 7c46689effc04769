package core

// AuditStep is a step of an audit.
type AuditStep uint8

const (
	// AuditWatch: the receiver is to watch what is out there from now on.
	AuditWatch AuditStep = iota + 1
	// AuditWatching: the sender watches.
	AuditWatching
	// AuditRead: all watch; the receiver is to tell.
	AuditRead
	// AuditTell tells the most that was out since the sender began to watch.
	AuditTell
)

// Audit is a message of an audit: it finds out whether less than nothing is out
// of an entity. There is an instant at which all sites watch, and what was out
// then is at most the sum of what they tell.
type Audit struct {
	From, To SiteID
	// Number is the random id of the audit.
	Number uint64
	Step   AuditStep
	// Watch is the random id under which the asked site watches: AuditWatching, and
	// back with AuditRead.
	Watch uint64
	// Net is what AuditTell tells.
	Net Tokens
	// Shape is that of the entity at the sender: AuditTell; see EntityRecord.
	Shape uint64
}
