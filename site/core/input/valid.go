package input

import "github.com/samya-db/samya/site/core/attempt"

// Valid reports whether all numbers are within their bounds, and the lease's id is the
// request's.
func (a *Acquire) Valid() bool {
	return a.Tokens >= 1 && a.Tokens <= MaxTokens && a.Least >= 0 && a.Least <= a.Tokens &&
		(a.Lease == nil || a.Lease.valid() && attempt.KeyOf(a.Lease.ID) == a.Request)
}

// Valid reports whether the number of tokens is within its bounds; it may be 0 for all
// tokens of a lease.
func (r *Release) Valid() bool {
	return r.Tokens >= 0 && r.Tokens <= MaxTokens && (r.Tokens > 0 || r.Lease != nil)
}

// Valid reports whether there are 1 to MaxParts parts, each of at least a token, with at
// most MaxTokens tokens in all.
func (a *AcquireAll) Valid() bool {
	if len(a.Parts) < 1 || len(a.Parts) > MaxParts {
		return false
	}
	rest := MaxTokens
	for _, p := range a.Parts {
		if p.Tokens < 1 || p.Tokens > rest {
			return false
		}
		rest -= p.Tokens
	}
	return true
}

// Valid reports whether all numbers are within their bounds.
func (t *Truth) Valid() bool {
	return t.InUse >= 0 && t.InUse <= MaxTokens && t.Counted >= -MaxTokens && t.Counted <= MaxTokens &&
		t.Returning >= 0 && t.Returning <= MaxTokens && t.Generation > 0
}

// Valid reports whether all numbers are within their bounds.
func (r *Rescue) Valid() bool {
	for _, l := range r.Leased {
		if l.Tokens < 1 || l.Tokens > MaxTokens || l.Until < 1 {
			return false
		}
	}
	return r.Site != "" && r.Generation > 0 && len(r.Leased) <= MaxLeased && max(r.Net, -r.Net) <= MaxTokens && max(r.Held, -r.Held) <= MaxTokens
}

// Simple reports whether the request needs no other site to be asked.
func (t *Tries) Simple() bool { return t.Attempt <= attempt.First && len(t.Tried) == 0 }
