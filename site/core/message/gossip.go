package message

import (
	"github.com/samya-db/samya/avantan"
)

// Gossip tells another site about the sender's busy entities. It is a hint: no guarantee
// rests on it.
type Gossip struct {
	From, To  avantan.SiteID
	Summaries []Summary
}

// Summary is a site's report of an entity: the tokens it has, and its expected need.
type Summary struct {
	Entity     string
	Generation uint64
	// Left is the number of tokens that may be handed out now; negative in a debt.
	Left avantan.Tokens
	// Median is the site's expected need at even odds over the horizon of a
	// redistribution, waiting acquires included.
	Median avantan.Tokens
	// Target is the number of tokens the site wants to hold to be safe, waiting acquires
	// included.
	Target avantan.Tokens
	// Net and Offered are balances of the sender's books.
	Net, Offered avantan.Tokens
	// Busy says that the sender has demand of its own, beyond others' reports.
	Busy bool
}
