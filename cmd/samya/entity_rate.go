package main

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/rates"
)

// rateFlags are the flags that make an entity a rate quota.
type rateFlags struct {
	rate, kind, zone string
	burst            int64
	durable, keys    bool
}

func (f *rateFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.rate, "rate", "", "makes a rate quota, whose tokens come back by the clock: tokens and a period, such as 100/10s, 5000/m or 2000000/day")
	flags.StringVar(&f.kind, "kind", "", "when the tokens of a rate quota come back: window, all at the end of a window; bucket, evenly; sliding, each a period after its grant (default window)")
	flags.Int64Var(&f.burst, "burst", 0, "most tokens of a bucket that may be acquired at once; the rate stays the same (default: the tokens of --rate)")
	flags.StringVar(&f.zone, "time-zone", "", "time zone of the days or months of a rate quota, such as Europe/Berlin (default UTC)")
	flags.BoolVar(&f.keys, "template", false, "makes a template: each name below it has a quota to itself, from its first use on")
	flags.BoolVar(&f.durable, "durable", false, "whether each grant of a rate quota is durable before its answer (default true for windows of an hour and longer)")
}

// creation has limit and terms of an entity: limit alone, or a rate such as 100/10s.
func (f *rateFlags) creation(limit int64, flags *pflag.FlagSet) (httpapi.Creation, error) {
	e := httpapi.Creation{Limit: limit, Kind: f.kind, TimeZone: f.zone, Keys: f.keys}
	if flags.Changed("durable") {
		e.Durable = &f.durable
	}
	if flags.Changed("limit") == (f.rate != "") {
		return e, &name.Error{Field: "limit", Problem: "pass either --limit or --rate"}
	}
	if f.rate != "" {
		tokens, period, found := strings.Cut(f.rate, "/")
		if !found || period == "" {
			return e, &name.Error{Field: "rate", Problem: "must be tokens and a period, such as 100/10s"}
		}
		var err error
		if e.Limit, err = strconv.ParseInt(tokens, 10, 64); err != nil {
			return e, &name.Error{Field: "rate", Problem: "must begin with a number of tokens, such as 100/10s"}
		}
		e.Per = period
	}
	terms, err := rates.Parse(e.Kind, e.Per, e.TimeZone, e.Durable)
	if err == nil && f.keys {
		terms, err = terms.OfKeys(e.Durable)
		if fault, ok := errors.AsType[*name.Error](err); ok && fault.Field == "keys" {
			err = &name.Error{Field: "template", Problem: fault.Problem}
		}
	}
	if err == nil && flags.Changed("burst") {
		e.Limit, err = terms.Burst(e.Limit, f.burst)
		e.Per = terms.Per()
	}
	return e, err
}

// inPeriods says how the tokens of a rate quota come back; empty for other entities.
func inPeriods(e *httpapi.Entity) string {
	if e.Keys {
		single := *e
		single.Keys = false
		return inPeriods(&single) + " for each name below it"
	}
	switch {
	case e.Per == "":
		return ""
	case e.Kind == string(rates.Bucket):
		return " that fills within " + e.Per
	case e.Kind == string(rates.Sliding):
		return " within any " + e.Per
	case e.TimeZone == "":
		return " in each window of " + e.Per
	}
	return " in each window of " + e.Per + " of " + e.TimeZone
}

// howRated says in a sentence when the tokens of a rate quota come back; ends is the end of
// its window in milliseconds, if it has windows.
func howRated(e *httpapi.Entity, ends int64) string {
	var how string
	switch e.Kind {
	case string(rates.Bucket):
		how = "The limit is a bucket" + inPeriods(e) + "."
	case string(rates.Sliding):
		how = "The limit is" + inPeriods(e) + "."
	default:
		how = "The limit is" + inPeriods(e) + ". This one ends at " + time.UnixMilli(ends).UTC().Format(time.RFC3339) + "."
	}
	if e.Durable != nil && !*e.Durable {
		how += " Grants are not durable: a site that starts anew takes all its tokens for granted."
	}
	return how
}
