package message

import (
	"github.com/samya-db/samya/avantan"
)

// AuditStep is a step of an audit.
type AuditStep uint8

const (
	// AuditWatch: the receiver is to watch its net from now on.
	AuditWatch AuditStep = iota + 1
	// AuditWatching: the sender watches.
	AuditWatching
	// AuditRead: all watch; the receiver is to tell.
	AuditRead
	// AuditTell tells the sender's largest net since it began to watch.
	AuditTell
)

// Audit is a message of an audit, which finds out whether fewer than zero tokens are out
// of an entity. There is an instant at which all sites watch, and the tokens out at that
// instant are at most the sum of the sites' answers.
type Audit struct {
	From, To avantan.SiteID
	// Number is the random id of the audit.
	Number uint64
	Step   AuditStep
	// Watch is the random id under which the asked site watches: AuditWatching, and back
	// with AuditRead.
	Watch uint64
	// Net is the net told by AuditTell.
	Net avantan.Tokens
	// Shape is the shape of the entity at the sender: AuditTell; see stored.Entity.
	Shape uint64
	// Still, in AuditTell, says that nothing has moved tokens between the sender and
	// others since its watch began. Held is then the sender's escrow.
	Still bool
	Held  avantan.Tokens
	// Applied, in AuditTell, is the last instance that the sender has applied.
	Applied avantan.Instance
}
