package core

// Gossip tells another site what the sender has of its busy entities. It is a
// hint: nothing that must hold rests on it.
type Gossip struct {
	From, To  SiteID
	Summaries []Summary
}

// Summary is what a site has of one entity, and what it expects to need.
type Summary struct {
	Entity     string
	Generation uint64
	// Left is what may be handed out now; negative in a debt.
	Left Tokens
	// Median is what the site expects to need at even odds over the horizon of a
	// redistribution, waiting acquires included.
	Median Tokens
	// Target is what it wants to hold to be safe, waiting acquires included.
	Target Tokens
}
