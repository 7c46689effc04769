package rates_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/internal/testfuzz"
)

// terms parses terms, which are valid.
func terms(t interface{ Fatal(args ...any) }, per, zone string) rates.Terms {
	parsed, err := rates.Parse("", per, zone, nil)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// TestParse: the texts of periods, and the field at fault of the others.
func TestParse(t *testing.T) {
	for _, c := range []struct{ kind, per, zone, want, field string }{
		{per: "", want: ""},
		{per: "s", want: "1s"},
		{per: "10s", want: "10s"},
		{per: "5 minutes", want: "5m"},
		{per: "1h", want: "1h"},
		{kind: "window", per: "day", zone: "Asia/Tokyo", want: "1d"},
		{per: "3 months", want: "3month"},
		{per: "366d", want: "366d"},
		{per: "367d", field: "per"},
		{per: "13month", field: "per"},
		{per: "0s", field: "per"},
		{per: "-1s", field: "per"},
		{per: "1.5h", field: "per"},
		{per: "99999999999s", field: "per"},
		{per: "week", field: "per"},
		{kind: "window", field: "per"},
		{kind: "bucket", per: "200ms", want: "200ms"},
		{kind: "bucket", per: "1month", field: "per"},
		{kind: "bucket", per: "1d", zone: "Europe/Berlin", field: "time_zone"},
		{kind: "sliding", per: "1h", want: "1h"},
		{kind: "sliding", per: "200ms", field: "per"},
		{per: "200ms", field: "per"},
		{kind: "sum", per: "1s", field: "kind"},
		{per: "1h", zone: "Europe/Berlin", field: "time_zone"},
		{per: "1d", zone: "Europe/Nowhere", field: "time_zone"},
		{per: "1d", zone: "Local", field: "time_zone"},
		{per: "1d", zone: "../Berlin", field: "time_zone"},
	} {
		got, err := rates.Parse(c.kind, c.per, c.zone, nil)
		if c.field != "" {
			if bad, ok := errors.AsType[*name.Error](err); !ok || bad.Field != c.field {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil || got.Per() != c.want || got.None() != (c.want == "") {
			t.Errorf("%+v: %q, %v", c, got.Per(), err)
		}
	}
}

// TestWindows: where windows begin and end.
func TestWindows(t *testing.T) {
	for _, c := range []struct{ per, zone, at, ends string }{
		{"10s", "", "2026-11-28T15:23:38Z", "2026-11-28T15:23:40Z"},
		{"10s", "", "2026-11-28T15:23:40Z", "2026-11-28T15:23:50Z"},
		{"5m", "", "2026-11-28T15:23:38Z", "2026-11-28T15:25:00Z"},
		{"1h", "", "2026-11-28T15:23:38Z", "2026-11-28T16:00:00Z"},
		{"1d", "", "2026-11-28T15:23:38Z", "2026-11-29T00:00:00Z"},
		{"1d", "Asia/Tokyo", "2026-11-28T15:23:38Z", "2026-11-29T15:00:00Z"},
		{"1d", "Europe/Berlin", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"}, // a day of 23 hours
		{"1d", "Europe/Berlin", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"}, // and of 25
		{"1month", "", "2026-02-28T23:59:59Z", "2026-03-01T00:00:00Z"},
		{"1month", "Europe/Berlin", "2026-12-31T22:59:59Z", "2026-12-31T23:00:00Z"},
		{"3month", "", "2026-11-28T15:23:38Z", "2027-01-01T00:00:00Z"},
		{"1d", "America/Sao_Paulo", "2018-11-03T12:00:00Z", "2018-11-04T03:00:00Z"}, // the next day begins at one
		{"1d", "Pacific/Apia", "2011-12-29T12:00:00Z", "2011-12-30T10:00:00Z"},      // the 30th was left out
		{"1s", "", "1969-12-31T23:59:59.5Z", "1970-01-01T00:00:00Z"},
	} {
		rate := terms(t, c.per, c.zone)
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		calendar := rates.NewCalendar(&rate)
		number, ends := calendar.At(at.UnixMilli())
		if got := time.UnixMilli(ends).UTC().Format(time.RFC3339); got != c.ends {
			t.Errorf("%s %s at %s: ends at %s, want %s", c.per, c.zone, c.at, got, c.ends)
		}
		if next, _ := calendar.At(ends); next != number+1 && c.zone != "Pacific/Apia" || next <= number {
			t.Errorf("%s %s at %s: window %d is followed by %d", c.per, c.zone, c.at, number, next)
		}
	}
}

// TestWindowsFollow walks through windows: each ends where its number changes, and numbers
// do not depend on where the walk began.
func TestWindowsFollow(t *testing.T) {
	zones := []string{"", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "America/Havana", "Africa/Cairo", "Pacific/Apia", "America/Godthab"}
	rapid.Check(t, func(t *rapid.T) {
		per := rapid.SampledFrom([]string{"1s", "7s", "1m", "90m", "1h", "5h", "1d", "2d", "30d", "1month", "5month"}).Draw(t, "per")
		zone := rapid.SampledFrom(zones).Draw(t, "zone")
		if !strings.HasSuffix(per, "d") && !strings.HasSuffix(per, "month") {
			zone = ""
		}
		rate := terms(t, per, zone)
		calendar := rates.NewCalendar(&rate)
		at := rapid.Int64Range(-86_400_000, 2_500_000_000_000).Draw(t, "at")
		last := int64(-1)
		for range 30 {
			number, ends := calendar.At(at)
			// A zone that sets its clocks back over midnight has a date twice.
			if number < last && zone == "" || number < last-1 {
				t.Fatalf("window %d follows window %d", number, last)
			}
			last = max(last, number)
			inside := at + rapid.Int64Range(0, ends-at-1).Draw(t, "inside")
			fresh := rates.NewCalendar(&rate)
			if n, e := fresh.At(inside); n != number || e != ends {
				t.Fatalf("at %d: window %d until %d, at %d: window %d until %d", at, number, ends, inside, n, e)
			}
			if ends <= at {
				t.Fatalf("at %d: window %d has ended at %d", at, number, ends)
			}
			at = ends
		}
	})
}

// FuzzParse: whatever parses is the same once written and parsed again.
func FuzzParse(tf *testing.F) {
	f := testfuzz.On(tf)
	for _, seed := range []string{"", "1s", "5 minutes", "day", "3month", "99999999999s", "١s"} {
		f.Add("window", seed, "")
		f.Add("", seed, "Europe/Berlin")
	}
	f.Fuzz(func(t *testing.T, kind, per, zone string) {
		parsed, err := rates.Parse(kind, per, zone, nil)
		if err != nil {
			return
		}
		durable := !parsed.Volatile
		if again, err := rates.Parse(string(parsed.Kind), parsed.Per(), parsed.Zone, &durable); !parsed.None() && (err != nil || again != parsed) {
			t.Fatalf("%+v is written as %q: %+v, %v", parsed, parsed.Per(), again, err)
		}
	})
}

// TestBurst: a bucket of another size fills at the same rate.
func TestBurst(t *testing.T) {
	for _, c := range []struct {
		per          string
		limit, burst int64
		want, field  string
	}{
		{"1s", 100, 20, "200ms", ""},
		{"1m", 1000, 10, "600ms", ""},
		{"1s", 3, 1, "333334us", ""},
		{"1s", 100, 500, "5s", ""},
		{"1h", 1, 24, "1d", ""},
		{"1d", 1, 367, "", "per"},
		{"366d", 1, 1 << 50, "", "burst"},
		{"1s", 0, 1, "", "burst"},
		{"1s", 1, 0, "", "burst"},
	} {
		terms := *flowTerms(rates.Bucket, c.per)
		limit, err := terms.Burst(c.limit, c.burst)
		if c.field != "" {
			if bad, ok := errors.AsType[*name.Error](err); !ok || bad.Field != c.field {
				t.Errorf("%+v: %v", c, err)
			}
		} else if err != nil || terms.Per() != c.want || limit != c.burst {
			t.Errorf("%+v: %d per %q, %v", c, limit, terms.Per(), err)
		}
	}
}
