// Package refuse words the refusals of requests about entities: sites and their stand-ins
// word them alike. It refuses to decide anything.
package refuse

import (
	"cmp"
	"fmt"
	"time"

	"github.com/samya-db/samya/internal/apierr"
)

// NoTokens returns an OutOfTokens error: entity (empty: any of several) has left tokens
// at site, fewer than wanted. retryAfter (zero: no advice) says when to try again.
func NoTokens(entity, site string, wanted, left int64, retryAfter time.Duration) *apierr.Error {
	return &apierr.Error{
		Reason:     apierr.OutOfTokens,
		Message:    fmt.Sprintf("%d tokens of %s wanted, %d left", wanted, cmp.Or(entity, "several entities"), left),
		Left:       &left,
		RetryAfter: retryAfter,
		Site:       site,
		Entity:     entity,
	}
}

// Exceeds returns an ExceedsLimit error: more tokens of entity (empty: any of several)
// are wanted than limit, the limit that site knows.
func Exceeds(entity, site string, wanted, limit int64) *apierr.Error {
	return &apierr.Error{
		Reason:  apierr.ExceedsLimit,
		Message: fmt.Sprintf("%d tokens of %s wanted, the limit is %d", wanted, cmp.Or(entity, "several entities"), limit),
		Limit:   &limit,
		Site:    site,
		Entity:  entity,
	}
}

// NoParent returns a ParentNotFound error: there is no such parent for entity.
func NoParent(entity, parent string) *apierr.Error {
	return &apierr.Error{Reason: apierr.ParentNotFound, Message: fmt.Sprintf("no entity %q to stand above %q", parent, entity), Entity: parent}
}

// Parental returns a HasChildren error.
func Parental(entity string) *apierr.Error {
	return &apierr.Error{
		Reason: apierr.HasChildren, Entity: entity,
		Message: fmt.Sprintf("entities stand below %q; delete them first, or all of the subtree at once", entity),
	}
}

// Exists returns an EntityExists error.
func Exists(entity string) *apierr.Error {
	return &apierr.Error{Reason: apierr.EntityExists, Message: fmt.Sprintf("entity %q exists", entity), Entity: entity}
}

// Reused returns a RequestIDReused error.
func Reused(requestID, site string) *apierr.Error {
	return &apierr.Error{
		Reason:    apierr.RequestIDReused,
		Message:   fmt.Sprintf("request id %q was used with another body", requestID),
		RequestID: requestID,
		Site:      site,
	}
}
