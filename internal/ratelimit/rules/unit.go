package rules

import "github.com/samya-db/samya/internal/rates"

// Unit is a unit of time of a limit.
type Unit string

// The units of the files.
const (
	Second Unit = "second"
	Minute Unit = "minute"
	Hour   Unit = "hour"
	Day    Unit = "day"
	Week   Unit = "week"
	Month  Unit = "month"
	Year   Unit = "year"
)

// units are all units, and their windows as rate quotas. Months and years follow the
// calendar of UTC; a week begins on Thursday, as 1970 did.
var units = map[Unit]rates.Terms{
	Second: {Kind: rates.Window, Count: 1, Unit: rates.Second},
	Minute: {Kind: rates.Window, Count: 1, Unit: rates.Minute},
	Hour:   {Kind: rates.Window, Count: 1, Unit: rates.Hour},
	Day:    {Kind: rates.Window, Count: 1, Unit: rates.Day},
	Week:   {Kind: rates.Window, Count: 7, Unit: rates.Day},
	Month:  {Kind: rates.Window, Count: 1, Unit: rates.Month},
	Year:   {Kind: rates.Window, Count: 12, Unit: rates.Month},
}

// keysOf are the windows that keys of templates may have, by their units, and the end of the
// templates' names.
var keysOf = func() map[Unit]keysUnit {
	all := make(map[Unit]keysUnit)
	for u, t := range units {
		if t, err := t.OfKeys(nil); err == nil {
			all[u] = keysUnit{t, string(u) + templates}
		}
	}
	return all
}()

type keysUnit struct {
	terms rates.Terms
	unit  string
}

// known reports whether u is among the units.
func (u Unit) known() bool {
	_, ok := units[u]
	return ok
}

// Terms returns the windows of a unit; the zero Terms for an unknown unit.
func (u Unit) Terms() rates.Terms { return units[u] }
