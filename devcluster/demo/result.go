package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/samya-db/samya/devcluster/load"
	"github.com/samya-db/samya/internal/httpapi"
)

// Errors of a demo in which the cluster broke a promise.
var (
	// ErrLimitExceeded says that more tokens were out at once than the limit.
	ErrLimitExceeded = errors.New("the limit was exceeded")
	// ErrBooksDiffer says that the clients' ledger and the sites' books do not agree on
	// the tokens out.
	ErrBooksDiffer = errors.New("ledger and books differ")
	// ErrLevelsDiffer says that at a site the books of an entity and of its children do
	// not agree.
	ErrLevelsDiffer = errors.New("the books of two levels differ")
	// ErrUnsettled says that the books did not settle, and so could not be compared.
	ErrUnsettled = errors.New("the books did not settle")
	// ErrUnresolved says that outcomes of requests stayed unknown.
	ErrUnresolved = errors.New("outcomes stayed unknown")
)

// Result is the result of a demo. Its JSON form is stable.
type Result struct {
	// Granted and Refused count acquires.
	Granted uint64 `json:"granted"`
	Refused uint64 `json:"refused"`
	// Requests counts acquires and releases made.
	Requests uint64 `json:"requests"`
	// Redistributions counts the redistributions that the cluster decided, and the
	// rounds of direct transfers that brought a site tokens.
	Redistributions uint64 `json:"redistributions"`
	// RedistributionsPerMinute is Redistributions over the duration.
	RedistributionsPerMinute float64 `json:"redistributions_per_minute"`
	// P50MS and P99MS are quantiles of the time from due to answered, in milliseconds.
	// They cover requests answered at the first attempt: executed requests, after a wait
	// for tokens too, and refused requests.
	P50MS float64 `json:"p50_ms"`
	P99MS float64 `json:"p99_ms"`
	// Limit is the limit of the entity.
	Limit int64 `json:"limit"`
	// MaxAcquired is the most tokens out at once by the ledger.
	MaxAcquired int64 `json:"max_acquired"`
	// AcquiredLedger and AcquiredBooks are the tokens out in the end.
	AcquiredLedger int64 `json:"acquired_ledger"`
	AcquiredBooks  int64 `json:"acquired_books"`
	// ConservationOK reports whether ledger and books agree and no outcome is unknown.
	ConservationOK bool `json:"conservation_ok"`
	// UnknownResolved counts requests with an outcome unknown at first and settled
	// later.
	UnknownResolved uint64 `json:"unknown_resolved"`
	// DurationS is the time for which the demo made load, in seconds.
	DurationS float64 `json:"duration_s"`
	// RPS is the requests per second over the duration.
	RPS float64 `json:"rps"`
	// Entities are the entities of a hierarchy, parents before children. Limit,
	// MaxAcquired, AcquiredLedger and AcquiredBooks then cover all organisations
	// together.
	Entities []EntityResult `json:"entities,omitempty"`

	plan    *plan // of a hierarchy; else nil
	entity  string
	verdict error
	regions []regionResult
	total   load.Counts
}

// EntityResult is the result of an entity of a hierarchy.
type EntityResult struct {
	// Name is the entity's name, Parent the name of the entity above; empty for none.
	Name   string `json:"name"`
	Parent string `json:"parent,omitempty"`
	// Limit is the entity's limit.
	Limit int64 `json:"limit"`
	// MaxAcquired is the most of the entity's tokens out at once by the ledger.
	MaxAcquired int64 `json:"max_acquired"`
	// AcquiredLedger and AcquiredBooks are the entity's tokens out in the end.
	AcquiredLedger int64 `json:"acquired_ledger"`
	AcquiredBooks  int64 `json:"acquired_books"`
	// Refused counts the acquires refused because this entity lacked tokens.
	Refused uint64 `json:"refused"`

	shares []httpapi.Share
}

// regionResult is a region's part of a result.
type regionResult struct {
	load.RegionStats
	peak int64 // the highest holdings seen
}

// Verdict returns nil if the cluster kept its promises, and else an error that wraps
// errors of this package.
func (r *Result) Verdict() error { return r.verdict }

// judge sets the verdict. settled reports whether the books came to rest.
func (r *Result) judge(settled bool, unresolved uint64) {
	var errs []error
	if r.MaxAcquired > r.Limit {
		errs = append(errs, fmt.Errorf("%w: %d tokens were out at once, the limit is %d", ErrLimitExceeded, r.MaxAcquired, r.Limit))
	}
	switch {
	case !settled:
		errs = append(errs, fmt.Errorf("%w within %s", ErrUnsettled, settleTimeout))
	case r.AcquiredLedger != r.AcquiredBooks:
		errs = append(errs, fmt.Errorf("%w: %d tokens are out by the clients' ledger, %d by the sites' books", ErrBooksDiffer, r.AcquiredLedger, r.AcquiredBooks))
	}
	if unresolved > 0 {
		errs = append(errs, fmt.Errorf("%w: %d", ErrUnresolved, unresolved))
	}
	r.ConservationOK = settled && unresolved == 0 && r.AcquiredLedger == r.AcquiredBooks
	if r.plan != nil {
		below := r.judgeEntities(settled)
		r.ConservationOK = r.ConservationOK && !errors.Is(below, ErrBooksDiffer) && !errors.Is(below, ErrLevelsDiffer)
		errs = append(errs, below)
	}
	r.verdict = errors.Join(errs...)
}

// writeJSON prints the result as a line of JSON.
func (r *Result) writeJSON(w io.Writer) error {
	if err := json.NewEncoder(w).Encode(r); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}

// text is the result for people.
func (r *Result) text() string {
	var b strings.Builder
	on := r.entity
	if r.plan != nil {
		on = r.plan.String()
	}
	fmt.Fprintf(&b, "%s requests on %s in %s s: %s a second\n\n",
		number(r.Requests), on, decimal(r.DurationS), decimal(r.RPS))
	fmt.Fprintf(&b, "%-6s%10s%10s%10s%10s%10s%10s\n", "region", "most held", "granted", "released", "refused", "p50 ms", "p99 ms")
	for _, g := range r.regions {
		fmt.Fprintf(&b, "%-6s%10s%10s%10s%10s%10s%10s\n", g.Region, number(g.peak),
			number(g.Counts.Granted), number(g.Counts.Released), number(g.Counts.Refused),
			decimal(milliseconds(g.Latency.P50)), decimal(milliseconds(g.Latency.P99)))
	}
	fmt.Fprintf(&b, "%-6s%10s%10s%10s%10s%10s%10s\n\n", "all", "",
		number(r.Granted), number(r.total.Released), number(r.Refused), decimal(r.P50MS), decimal(r.P99MS))
	if r.plan != nil {
		b.WriteString(r.treeText())
	}
	fmt.Fprintf(&b, "redistributions       %s, %s a minute\n", number(r.Redistributions), decimal(r.RedistributionsPerMinute))
	fmt.Fprintf(&b, "most tokens out       %s of %s\n", number(r.MaxAcquired), number(r.Limit))
	fmt.Fprintf(&b, "tokens out at the end %s by the clients' ledger, %s by the sites' books\n", number(r.AcquiredLedger), number(r.AcquiredBooks))
	if r.total.Unknown > 0 {
		fmt.Fprintf(&b, "unknown outcomes      %s, of which resolved %s\n", number(r.total.Unknown), number(r.UnknownResolved))
	}
	if r.total.Failed > 0 || r.total.Shed > 0 {
		fmt.Fprintf(&b, "failed requests       %s, not made for lack of answers %s\n", number(r.total.Failed), number(r.total.Shed))
	}
	if r.total.LastError != "" {
		fmt.Fprintf(&b, "last error seen       %s\n", r.total.LastError)
	}
	b.WriteByte('\n')
	if r.verdict == nil {
		held := "the limit held"
		if r.plan != nil {
			held = "the limits of " + r.plan.String() + " held"
		}
		fmt.Fprintf(&b, "OK: %s at every instant, and ledger and books agree.\n", held)
	} else {
		for line := range strings.Lines(r.verdict.Error()) {
			fmt.Fprintf(&b, "FAILED: %s\n", strings.TrimSpace(line))
		}
	}
	return b.String()
}

// milliseconds returns d in milliseconds, to the microsecond.
func milliseconds(d time.Duration) float64 {
	return round(float64(d)/float64(time.Millisecond), 1000)
}

// round rounds x to multiples of 1/parts.
func round(x, parts float64) float64 { return math.Round(x*parts) / parts }
