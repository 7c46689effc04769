package stored

import (
	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// ChangeTimes bound the life of an administrative change. All are milliseconds since
// the Unix epoch, by the clock of the site that proposes the change or, if that is
// later, by the sequence's own clock. They are part of the decided value, so all
// sites judge a change alike, whatever their own clocks say.
//
// The clock of a sequence is the latest Asked of all changes that it has decided. A
// change with a NotAfter before that clock is dead: deciding it does nothing. The
// result of a change is kept until the clock has passed Keep, which is later than
// NotAfter. So no change that is proposed twice has an effect twice.
type ChangeTimes struct {
	// Asked is when the change was asked for; 0 for changes of an older version.
	Asked int64 `json:"asked,omitempty"`
	// NotAfter is the time after which the change is dead; 0 for never.
	NotAfter int64 `json:"not_after,omitempty"`
	// Keep is the time until which the result is kept.
	Keep int64 `json:"keep,omitempty"`
}

// Dead reports whether a change is dead at a sequence's clock.
func (t *ChangeTimes) Dead(clock int64) bool { return t.NotAfter != 0 && t.NotAfter < clock }

// CatalogueChange is a creation, deletion or move, a change of the mode, or a raise of the
// cluster's version, as the catalogue's sequence decides it.
type CatalogueChange struct {
	Kind  input.ChangeKind `json:"kind"`
	Name  string           `json:"name"`
	Limit avantan.Tokens   `json:"limit,omitempty"`
	// Parent is the name of the parent: CreateEntity, MoveEntity.
	Parent string `json:"parent,omitempty"`
	// Rate has the terms of a rate quota: CreateEntity.
	Rate rates.Terms `json:"rate,omitzero"`
	// Subtree has a DeleteEntity delete the entity's descendants too.
	Subtree bool `json:"subtree,omitempty"`
	// Incarnation is the incarnation of the data of the site: AdmitSite.
	Incarnation uint64 `json:"incarnation,omitempty"`
	// Heir is the member that takes over: DrainSite.
	Heir avantan.SiteID `json:"heir,omitempty"`
	// Mode is the protocol to switch to: SetMode.
	Mode string `json:"mode,omitempty"`
	// Generation is the generation expected by a deletion or move, or the version
	// expected by a change of the mode or of the sites; 0 for any.
	Generation uint64 `json:"generation,omitempty"`
	// Version is the version to raise the cluster's to: RaiseVersion.
	Version versions.Version `json:"version,omitempty"`
	// Begin, in the first change of a cluster, is the version that the cluster begins
	// with; 0 for the first version.
	Begin     versions.Version `json:"begin,omitempty"`
	RequestID string           `json:"request_id"`
	Body      uint64           `json:"body"`
	ChangeTimes
}

// LimitResult is the outcome of a decided limit change, kept so that a repeat of its
// request id gets the same answer at every site.
type LimitResult struct {
	RequestID string `json:"request_id"`
	Body      uint64 `json:"body"`
	// Outcome is OK or Mismatch.
	Outcome answer.Code `json:"outcome"`
	// Limit and Version are the entity's values after the change.
	Limit   avantan.Tokens `json:"limit"`
	Version uint64         `json:"version"`
	// Returned is the number of tokens that a rescue has brought back into circulation.
	Returned avantan.Tokens `json:"returned,omitempty"`
	// Asked and Keep are as in ChangeTimes.
	Asked int64 `json:"asked,omitempty"`
	Keep  int64 `json:"keep,omitempty"`
}
