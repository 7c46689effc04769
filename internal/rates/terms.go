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
)

// Unit is a unit of periods.
type Unit string

// The units. Days and months are of the calendar in a time zone.
const (
	Second Unit = "second"
	Minute Unit = "minute"
	Hour   Unit = "hour"
	Day    Unit = "day"
	Month  Unit = "month"
)

// lengths are the lengths of the units in milliseconds. A month has none.
var lengths = map[Unit]int64{Second: 1000, Minute: 60_000, Hour: 3_600_000, Day: 86_400_000}

// maxPeriod bounds a period, in milliseconds, and maxMonths the number of its months: a year.
const (
	maxPeriod = 366 * 86_400_000
	maxMonths = 12
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
}

// None reports whether these are the terms of an entity without a period.
func (t *Terms) None() bool { return *t == Terms{} }

// Validate returns a [name.Error] for the field that is out of range.
func (t *Terms) Validate() error {
	length, known := lengths[t.Unit]
	switch {
	case t.None():
		return nil
	case t.Kind != Window:
		return &name.Error{Field: "kind", Problem: fmt.Sprintf("must be %q", Window)}
	case !known && t.Unit != Month:
		return &name.Error{Field: "per", Problem: "must be in seconds, minutes, hours, days or months"}
	case t.Count < 1 || t.Unit == Month && t.Count > maxMonths || known && int64(t.Count) > maxPeriod/length:
		return &name.Error{Field: "per", Problem: "must be at least a second and at most a year"}
	case t.Zone != "" && t.Unit != Day && t.Unit != Month:
		return &name.Error{Field: "time_zone", Problem: "is for days and months"}
	}
	if t.Zone != "" {
		if _, err := time.LoadLocation(t.Zone); err != nil || t.Zone == "Local" {
			return &name.Error{Field: "time_zone", Problem: "is unknown; one is Europe/Berlin"}
		}
	}
	return nil
}

// abbreviations are the texts of the units in Parse.
var abbreviations = map[string]Unit{
	"s": Second, "second": Second, "seconds": Second,
	"m": Minute, "min": Minute, "minute": Minute, "minutes": Minute,
	"h": Hour, "hour": Hour, "hours": Hour,
	"d": Day, "day": Day, "days": Day,
	"month": Month, "months": Month,
}

// Parse returns the terms of a kind, a period such as "5m", "day" or "3 months", and a time
// zone; the zero Terms if all are empty. Without a kind it is Window. Its error is a
// [name.Error].
func Parse(kind, per, zone string) (Terms, error) {
	if kind == "" && per == "" && zone == "" {
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
	return t, t.Validate()
}

// short are the canonical texts of the units.
var short = map[Unit]string{Second: "s", Minute: "m", Hour: "h", Day: "d", Month: "month"}

// Per is the period as Parse takes it; empty for None.
func (t *Terms) Per() string {
	if t.None() {
		return ""
	}
	return strconv.FormatUint(uint64(t.Count), 10) + short[t.Unit]
}
