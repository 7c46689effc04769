package httpapi

import "time"

// Entity is a resource with a limit.
type Entity struct {
	// Name is the entity's name.
	Name string `json:"name"`
	// Limit is the most tokens that may be out at once.
	Limit int64 `json:"limit"`
	// Generation tells the entity apart from earlier entities of its name.
	Generation uint64 `json:"generation"`
	// Version counts the changes of the limit, from 1.
	Version uint64 `json:"version"`
	// Parent is the entity right above it; empty for none.
	Parent string `json:"parent,omitempty"`
	// Children is how many entities stand right below it.
	Children int `json:"children,omitempty"`
	// Per is the period of a rate quota, such as "1m", and Kind "window", "bucket" or
	// "sliding"; both are empty for other entities.
	Per  string `json:"per,omitempty"`
	Kind string `json:"kind,omitempty"`
	// TimeZone is the time zone of windows of days or months; empty for UTC.
	TimeZone string `json:"time_zone,omitempty"`
	// Durable says whether grants of a rate quota are durable; nil for other entities, and
	// in a creation for the default.
	Durable *bool `json:"durable,omitempty"`
	// Keys: the entity is a template, and each name below it has a quota to itself.
	Keys bool `json:"keys,omitempty"`
}

// Change is a change of a limit.
type Change struct {
	// Limit is the new limit.
	Limit int64 `json:"limit"`
	// ExpectedVersion is the version that the entity must have; 0: any.
	ExpectedVersion uint64 `json:"expected_version,omitempty"`
	// RequestID names the request; if empty, samya makes an id.
	RequestID string `json:"request_id,omitempty"`
	// WaitApplied delays the answer until all sites have applied the change, at most for
	// 10 s.
	WaitApplied bool `json:"wait_applied,omitempty"`
	// DryRun changes nothing, and has the answer tell what would happen.
	DryRun bool `json:"dry_run,omitempty"`
}

// Changed is the answer to a change of a limit.
type Changed struct {
	Entity
	// MayExceedBy is by how many tokens the limit may be exceeded at most. Sites that
	// have not heard of the limit go on granting the tokens they hold.
	MayExceedBy int64 `json:"may_exceed_by"`
	// MissingSites are not known to have applied the change.
	MissingSites []string `json:"missing_sites"`
	// DryRun is what would happen; nil unless the request was a dry run.
	DryRun *DryRun `json:"dry_run,omitempty"`
}

// DryRun is what a change would do.
type DryRun struct {
	// Complete says that every site that counts answered.
	Complete bool `json:"complete"`
	// Effects are sentences for people.
	Effects []string `json:"effects"`
	// TokensShort is by how many tokens more would be out than the limit, ReleasesNeeded how
	// many have to be released before any is granted.
	TokensShort    int64 `json:"tokens_short"`
	ReleasesNeeded int64 `json:"releases_needed"`
	// Sites have the tokens that each site has to grant, before and, by an estimate, after.
	Sites []DryRunShare `json:"sites"`
}

// DryRunShare is what a change would do to the tokens left at a site.
type DryRunShare struct {
	Site       string `json:"site"`
	LeftBefore int64  `json:"left_before"`
	LeftAfter  int64  `json:"left_after"`
}

// Status is an entity and the sum of the sites' books about it.
type Status struct {
	Entity
	// Available is how many tokens can be acquired now, over the shares seen.
	Available int64 `json:"available"`
	// Acquired is how many tokens are out, over the shares seen.
	Acquired int64 `json:"acquired"`
	// InTransit is how many tokens are between sites; null in JSON, and 0 here, unless
	// Complete.
	InTransit int64 `json:"in_transit"`
	// Complete reports whether every site answered this read.
	Complete bool `json:"complete"`
	// Consistent reports whether the shares of an exact read are a consistent cut.
	Consistent bool `json:"consistent"`
	// Debt is by how many tokens the circulation exceeds a lowered limit.
	Debt int64 `json:"debt"`
	// MayExceedBy is by how many tokens the limit may be exceeded at most. Sites that
	// have not heard of the limit go on granting the tokens they hold.
	MayExceedBy int64 `json:"may_exceed_by"`
	// Surplus are tokens released and never acquired, kept out of circulation.
	Surplus int64 `json:"surplus"`
	// WrittenOff are tokens that lost sites held, kept out of circulation until the entity
	// is reconciled.
	WrittenOff int64 `json:"written_off"`
	// WindowEndsMS is the end of the window of a rate quota, the latest of the sites seen,
	// in milliseconds since the Unix epoch; else 0.
	WindowEndsMS int64 `json:"window_ends_ms,omitempty"`
	// Shares has a share for each site, in the order of the names.
	Shares []Share `json:"shares"`
}

// Share is a site's part of an entity.
type Share struct {
	// Site is the site's name.
	Site string `json:"site"`
	// Left is how many tokens the site can grant now.
	Left int64 `json:"left"`
	// Offered is how many tokens are set aside for a redistribution under way.
	Offered int64 `json:"offered"`
	// Net is the tokens acquired minus the tokens released at the site.
	Net int64 `json:"net"`
	// AgeMS is the age of the figures, in milliseconds.
	AgeMS int64 `json:"age_ms"`
	// Known reports whether any figure of the site was ever seen.
	Known bool `json:"known"`
	// Waiting counts the acquires that wait for tokens at the site.
	Waiting int64 `json:"waiting"`
	// Redistributions counts the redistributions of this entity that the site has
	// applied.
	Redistributions uint64 `json:"redistributions"`
	// Transfers counts the rounds of direct transfers that have brought it tokens.
	Transfers uint64 `json:"transfers"`
}

// Page is a page of a list of entities.
type Page struct {
	// Entities are the page's entities, in the order of their names.
	Entities []Entity `json:"entities"`
	// NextPageToken asks for the next page; empty on the last.
	NextPageToken string `json:"next_page_token"`
}

// Request is the body of an acquire or a release.
type Request struct {
	// Tokens is how many tokens to move; 0 with a Lease: all tokens of the lease.
	Tokens int64 `json:"tokens,omitempty"`
	// MinTokens is the fewest tokens that an acquire accepts; 0: all.
	MinTokens int64 `json:"min_tokens,omitempty"`
	// DryRun only asks how many tokens an acquire would be granted at once.
	DryRun bool `json:"dry_run,omitempty"`
	// Once says that nobody repeats the acquire: of a rate quota that is not durable, and of
	// keys, nothing remembers it.
	Once bool `json:"once,omitempty"`
	// Lease is a [LeaseTerms] for an acquire. For a release it is the name of the tokens'
	// lease.
	Lease any `json:"lease,omitempty"`
	// Attempt counts the attempts of the id. Tried are the sites that earlier attempts
	// may have reached (none: any). After NotAfter no attempt is executed.
	Attempt  uint32     `json:"attempt,omitempty"`
	Tried    []string   `json:"tried,omitempty"`
	NotAfter *time.Time `json:"not_after,omitempty"`
	// RequestID names the request; if empty, samya makes an id.
	RequestID string `json:"request_id,omitempty"`
	// Wait is how long an acquire may wait for tokens, as a duration such as "2s"; empty:
	// the site's default. A release has no wait.
	Wait string `json:"wait,omitempty"`
	// Site is the only site that may answer; empty: any.
	Site string `json:"site,omitempty"`
}

// Moved is the answer to an executed acquire or release.
type Moved struct {
	// Tokens is how many tokens moved.
	Tokens int64 `json:"tokens"`
	// RequestID is the request's id.
	RequestID string `json:"request_id"`
	// Site is the site that executed the request.
	Site string `json:"site"`
	// Left is how many tokens were left at that site just after.
	Left int64 `json:"left"`
	// Lease is the granted lease, if the acquire asked for a lease.
	Lease *Lease `json:"lease,omitempty"`
	// Parked reports that a release is recorded, and will be counted once.
	Parked bool `json:"parked,omitempty"`
}

// LeaseTerms ask for a lease.
type LeaseTerms struct {
	// TTL is how long the tokens are held, as a duration such as "30s".
	TTL string `json:"ttl"`
	// Holder names the holder of the lease; may be empty.
	Holder string `json:"holder,omitempty"`
	// Share has the holder grant tokens of a rate quota in place of the site.
	Share bool `json:"share,omitempty"`
}

// Lease is tokens held until a time.
type Lease struct {
	// Name names the lease: the site that granted it, a slash and the id of the
	// acquire.
	Name string `json:"name"`
	// Entity is the entity's name.
	Entity string `json:"entity"`
	// Tokens are the tokens that the lease still holds.
	Tokens int64 `json:"tokens"`
	// RemainingMS is how many milliseconds the lease still lasts.
	RemainingMS int64 `json:"remaining_ms"`
	// Holder names the holder of the lease.
	Holder string `json:"holder"`
	// Share: the holder grants tokens in place of the site.
	Share bool `json:"share,omitempty"`
}

// LeasePage is a page of leases.
type LeasePage struct {
	// Leases are the leases of the page, site by site.
	Leases []Lease `json:"leases"`
	// NextPageToken asks for the next page; empty on the last.
	NextPageToken string `json:"next_page_token"`
	// Missing are sites that did not answer; their leases are left out.
	Missing []string `json:"missing"`
}

// Committed is the answer to a commit of a lease.
type Committed struct {
	// Lease is the lease's name.
	Lease string `json:"lease"`
	// Tokens are the tokens kept, Returned the tokens given back.
	Tokens   int64 `json:"tokens"`
	Returned int64 `json:"returned"`
	// RequestID is the request's id.
	RequestID string `json:"request_id"`
	// Site is the site of the lease.
	Site string `json:"site"`
}

// Sites are the sites of a cluster.
type Sites struct {
	// Cluster is the cluster's name.
	Cluster string `json:"cluster"`
	// AnsweredBy is the process that answered.
	AnsweredBy string `json:"answered_by"`
	// Sites are the member sites, in the order of their names.
	Sites []Site `json:"sites"`
}

// Site is a member site as the answering process sees it.
type Site struct {
	// Name is the site's name.
	Name string `json:"name"`
	// Region is the region of the site.
	Region string `json:"region"`
	// Address is the address of its gRPC API, if known.
	Address string `json:"address"`
	// Health is the site's health, if known.
	Health string `json:"health"`
	// RoundTripMS is the measured round trip in milliseconds; nil if not
	// measured.
	RoundTripMS *float64 `json:"round_trip_ms"`
	// OldestVersion and NewestVersion are the versions that the site's build speaks; 0 if
	// not known.
	OldestVersion uint32 `json:"oldest_version"`
	NewestVersion uint32 `json:"newest_version"`
	// Refusal is why another site and this one refuse to work together, as a site told;
	// empty if none said so.
	Refusal string `json:"refusal"`
	// HTTPAddress is the host:port of its metrics and health, if known.
	HTTPAddress string `json:"http_address"`
	// Node is the node that runs the site, and Term the number of the take-over by which it
	// does; empty and 0 for a site of a single process.
	Node string `json:"node,omitempty"`
	Term int64  `json:"term,omitempty"`
	// Standbys is how many other nodes follow, ready to take over.
	Standbys uint32 `json:"standbys,omitempty"`
}

// State is a state of a watched entity.
type State struct {
	Status
	// Deleted reports that the entity was deleted. No state follows.
	Deleted bool `json:"deleted"`
	// ResumeToken resumes the watch after this state.
	ResumeToken string `json:"resume_token"`
}
