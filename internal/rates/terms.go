// Package rates has the arithmetic of rate quotas: how many tokens of an entity may be
// granted in a period. It says when windows begin and end, and when granted tokens may be
// granted again.
//
// A rate quota uses the books of any other entity: a site grants from its own escrow. The
// tokens it granted come back by the clock and not by a release. So a site grants at most
// its escrow in each window, and the escrows of all sites add up to the limit.
//
// Package rates refuses to hold balances: package books does. It reads no clock. Time
// zones come from the machine, or else from the program.
package rates

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // so that all builds know the same time zones, on any machine

	"github.com/samya-db/samya/internal/name"
)

// Kind says when granted tokens come back.
type Kind string

const (
	// Window counts from the start of each window: at its end all tokens come back.
	Window Kind = "window"
	// Bucket has the tokens come back evenly: all within a period, if none are left.
	Bucket Kind = "bucket"
	// Sliding has each token come back a period after it was granted.
	Sliding Kind = "sliding"
)

// Unit is a unit of periods.
type Unit string

// The units. Days and months of windows are of the calendar in a time zone; all other days
// have 24 hours. Parts of a second are for buckets.
const (
	Microsecond Unit = "microsecond"
	Millisecond Unit = "millisecond"
	Second      Unit = "second"
	Minute      Unit = "minute"
	Hour        Unit = "hour"
	Day         Unit = "day"
	Month       Unit = "month"
)

// lengths are the lengths of the units in microseconds. A month has none.
var lengths = map[Unit]int64{
	Microsecond: 1, Millisecond: 1000, Second: 1_000_000, Minute: 60_000_000, Hour: 3_600_000_000, Day: 86_400_000_000,
}

// maxPeriod bounds a period, in microseconds, and maxMonths the number of its months: a year.
const (
	maxPeriod = 366 * 86_400_000_000
	maxMonths = 12
	// longPeriod is the shortest period, in microseconds, of windows that are durable unless
	// their maker says otherwise.
	longPeriod = 3_600_000_000
)

// Terms are the terms of a rate quota beside its limit: so many tokens in so many units.
// The zero Terms are for an entity that is no rate quota.
type Terms struct {
	Kind Kind `json:"kind,omitempty"`
	// Count is the number of units in a period, at least 1.
	Count uint32 `json:"count,omitempty"`
	Unit  Unit   `json:"unit,omitempty"`
	// Zone is the name of a time zone, of windows of days or months; empty for UTC.
	Zone string `json:"zone,omitempty"`
	// Volatile says that grants are not made durable. A site that starts anew takes all its
	// tokens for granted.
	Volatile bool `json:"volatile,omitempty"`
	// Keys says that the entity is a template: each name below it, a key, has a quota of these
	// terms to itself.
	Keys bool `json:"keys,omitempty"`
}

// Nanos is the length of a period in nanoseconds; 0 for months.
func (t *Terms) Nanos() int64 { return 1000 * t.micros() }

// micros is the length of a period in microseconds; 0 for months.
func (t *Terms) micros() int64 { return int64(t.Count) * lengths[t.Unit] }

// None reports whether these are the terms of an entity without a period.
func (t *Terms) None() bool { return *t == Terms{} }

// Validate returns a [name.Error] for the field that is out of range.
func (t *Terms) Validate() error {
	length, known := lengths[t.Unit]
	switch {
	case t.None():
		return nil
	case t.Kind != Window && t.Kind != Bucket && t.Kind != Sliding:
		return &name.Error{Field: "kind", Problem: fmt.Sprintf("must be %q, %q or %q", Window, Bucket, Sliding)}
	case !known && t.Unit != Month:
		return &name.Error{Field: "per", Problem: "must be in seconds, minutes, hours, days or months"}
	case t.Unit == Month && t.Kind != Window:
		return &name.Error{Field: "per", Problem: "must be at most 366d, as months are for windows"}
	case known && length < lengths[Second] && t.Kind != Bucket:
		return &name.Error{Field: "per", Problem: "must be at least a second, as parts of a second are for buckets"}
	case t.Count < 1 || t.Unit == Month && t.Count > maxMonths || known && int64(t.Count) > maxPeriod/length:
		return &name.Error{Field: "per", Problem: "must be at least a second and at most a year"}
	case t.Keys && t.Kind == Sliding:
		return &name.Error{Field: "kind", Problem: fmt.Sprintf("must be %q or %q for keys", Window, Bucket)}
	case t.Keys && !t.Volatile:
		return &name.Error{Field: "durable", Problem: "must be false for keys"}
	case t.Keys && t.Kind == Window && (t.Unit == Month || t.micros() >= longPeriod):
		return &name.Error{Field: "per", Problem: "must be below an hour for windows of keys: after a start a site has none of their tokens until the window ends"}
	case t.Zone != "" && (t.Kind != Window || t.Unit != Day && t.Unit != Month):
		return &name.Error{Field: "time_zone", Problem: "is for windows of days and months"}
	}
	if t.Zone != "" {
		if _, err := time.LoadLocation(t.Zone); err != nil || t.Zone == "Local" {
			return &name.Error{Field: "time_zone", Problem: "is unknown; one is Europe/Berlin"}
		}
	}
	return nil
}

// OfKeys returns the terms of a template; its keys are volatile unless durable says otherwise,
// which is an error. Its error is a [name.Error].
func (t Terms) OfKeys(durable *bool) (Terms, error) {
	if t.None() {
		return t, &name.Error{Field: "keys", Problem: "is for rate quotas"}
	}
	t.Keys, t.Volatile = true, durable == nil || !*durable
	return t, t.Validate()
}

// abbreviations are the texts of the units in Parse.
var abbreviations = map[string]Unit{
	"us": Microsecond, "ms": Millisecond,
	"s": Second, "second": Second, "seconds": Second,
	"m": Minute, "min": Minute, "minute": Minute, "minutes": Minute,
	"h": Hour, "hour": Hour, "hours": Hour,
	"d": Day, "day": Day, "days": Day,
	"month": Month, "months": Month,
}

// Parse returns the terms of a kind, a period such as "5m", "day" or "3 months", and a time
// zone; the zero Terms if all are empty. Without a kind it is Window. If durable is nil the
// grants of windows of an hour and longer are durable, and all others volatile. Its error is
// a [name.Error].
func Parse(kind, per, zone string, durable *bool) (Terms, error) {
	if kind == "" && per == "" && zone == "" {
		if durable != nil {
			return Terms{}, &name.Error{Field: "durable", Problem: "is for rate quotas; all other entities are durable"}
		}
		return Terms{}, nil
	}
	rest := strings.TrimLeft(per, "0123456789")
	count, err := uint64(1), error(nil)
	if digits := per[:len(per)-len(rest)]; digits != "" {
		count, err = strconv.ParseUint(digits, 10, 32)
	}
	unit, known := abbreviations[strings.TrimPrefix(rest, " ")]
	if err != nil || !known {
		return Terms{}, &name.Error{Field: "per", Problem: "must be a number and a unit, such as 10s, 5m, 1h, 1d or 1month"}
	}
	t := Terms{Kind: Kind(cmp.Or(kind, string(Window))), Count: uint32(count), Unit: unit, Zone: zone} //nolint:gosec // parsed as 32 bits
	if durable != nil {
		t.Volatile = !*durable
	} else {
		t.Volatile = t.Kind != Window || t.Unit != Month && t.micros() < longPeriod
	}
	return t, t.Validate()
}

// short are the canonical texts of the units.
var short = map[Unit]string{Microsecond: "us", Millisecond: "ms", Second: "s", Minute: "m", Hour: "h", Day: "d", Month: "month"}

// Per is the period as Parse takes it; empty for None.
func (t *Terms) Per() string {
	if t.None() {
		return ""
	}
	return strconv.FormatUint(uint64(t.Count), 10) + short[t.Unit]
}

// Burst changes the terms of a bucket: it holds at most burst tokens, and they come back at
// the same rate. It returns burst as its limit. The period is rounded up to a microsecond.
// Its error is a [name.Error].
func (t *Terms) Burst(limit, burst int64) (int64, error) {
	switch {
	case t.Kind != Bucket:
		return limit, &name.Error{Field: "burst", Problem: "is for buckets"}
	case burst < 1 || burst > name.MaxTokens:
		return limit, &name.Error{Field: "burst", Problem: fmt.Sprintf("must be at least 1 and at most %d", int64(name.MaxTokens))}
	case limit < 1:
		return limit, &name.Error{Field: "burst", Problem: "is for a limit of at least 1"}
	}
	high, low := bits.Mul64(uint64(t.micros()), uint64(burst)) //nolint:gosec // both are above 0
	if high >= uint64(limit) {
		return limit, &name.Error{Field: "burst", Problem: "would take more than a year to come back"}
	}
	micros, rest := bits.Div64(high, low, uint64(limit))
	if rest > 0 {
		micros++
	}
	for _, unit := range []Unit{Day, Hour, Minute, Second, Millisecond, Microsecond} {
		if length := uint64(lengths[unit]); micros%length == 0 && micros/length <= math.MaxUint32 { //nolint:gosec // above 0
			t.Count, t.Unit = uint32(micros/length), unit //nolint:gosec // as tested
			return burst, t.Validate()
		}
	}
	return limit, &name.Error{Field: "burst", Problem: "would take a period that has too many microseconds"}
}
