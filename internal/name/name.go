// Package name checks the names and counts that cross samya's public API, so that every
// process has the same bounds. It repairs nothing: a value is good as it is, or answered
// with an [Error] that names the field and the broken bound.
//
// Good values cost no allocation; the checks sit on the path of every request.
package name

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// The bounds of the public API.
const (
	// maxEntity is the longest entity name, in bytes; all its characters are
	// ASCII.
	maxEntity = 256
	// maxRequestID is the longest request id, in bytes.
	maxRequestID = 128
	// maxSite is the longest name of a site or a region, in bytes: a DNS label.
	maxSite = 63
	// MaxTokens bounds the tokens in a request and the limit of an entity. It is the
	// largest integer that every JSON client can hold exactly, and sums of a thousand
	// such numbers fit 64 bits.
	MaxTokens = 1<<53 - 1
	// MaxPageSize is the most entities in a page.
	MaxPageSize = 1000
	// MaxOperations is the most operations in a batch.
	MaxOperations = 1000
	// maxWait is how long a request may wait for tokens.
	maxWait = 60 * time.Second
	// maxAge is the greatest age of figures that a read can allow.
	maxAge = time.Hour
	// maxHolder is the longest name of a lease's holder, in bytes.
	maxHolder = 128
	// minTTL and maxTTL bound the time to live of a lease.
	minTTL = time.Second
	maxTTL = 7 * 24 * time.Hour
	// MaxAttempt is the highest number of a caller's attempt of a request.
	MaxAttempt = 1<<20 - 1
)

// Error describes a fault in a field. It holds no part of the value longer than a
// character, so that it can be logged and sent back.
type Error struct {
	// Field is the field's name as the caller of the API knows it.
	Field string
	// Problem is the fault, with the broken bound.
	Problem string
}

// Error returns "field: problem".
func (e *Error) Error() string { return e.Field + ": " + e.Problem }

// Entity checks the name of an entity: 1 to 256 characters, in segments of
// letters, digits, '.', '_' and '-', separated by single slashes. No segment may be "."
// or "..", which HTTP clients and proxies resolve away.
func Entity(field, s string) error {
	if err := length(field, s, maxEntity); err != nil {
		return err
	}
	last, err := segments(field, s)
	if err != nil {
		return err
	}
	return segment(field, last)
}

// Parent checks the name of a parent entity: empty for none, or as [Entity].
func Parent(field, s string) error {
	if s == "" {
		return nil
	}
	return Entity(field, s)
}

// Prefix checks a filter of entity names: empty, or the beginning of a name that [Entity]
// accepts.
func Prefix(field, s string) error {
	if s == "" {
		return nil
	}
	if err := length(field, s, maxEntity); err != nil {
		return err
	}
	// The last segment is open: it may still be empty, "." or "..".
	_, err := segments(field, s)
	return err
}

// Part checks a text to find in names of entities: empty, or up to 256 printable ASCII
// characters, no space.
func Part(field, s string) error {
	if s == "" {
		return nil
	}
	return printable(field, s, maxEntity)
}

// Has reports whether part is in a name. Part is in lower case; upper case in the name counts
// as lower case.
func Has(name, part string) bool {
	for i := 0; i+len(part) <= len(name); i++ {
		j := 0
		for j < len(part) && lower(name[i+j]) == part[j] {
			j++
		}
		if j == len(part) {
			return true
		}
	}
	return false
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// RequestID checks a request id: 1 to 128 printable ASCII characters, no space.
func RequestID(field, s string) error {
	return printable(field, s, maxRequestID)
}

// Holder checks the name of a lease's holder: empty, or up to 128 printable ASCII characters,
// no space.
func Holder(field, s string) error {
	if s == "" {
		return nil
	}
	return printable(field, s, maxHolder)
}

// Lease checks the name of a lease and returns its parts: the site that granted it and,
// after a slash, the id of the acquire.
func Lease(field, s string) (site, requestID string, err error) {
	site, requestID, ok := strings.Cut(s, "/")
	if !ok || Site(field, site) != nil || RequestID(field, requestID) != nil {
		return "", "", &Error{field, "must be a site's name, a slash and the request id of an acquire"}
	}
	return site, requestID, nil
}

func printable(field, s string, most int) error {
	if err := length(field, s, most); err != nil {
		return err
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return badCharacter(field, s[i], i, "printable ASCII without space")
		}
	}
	return nil
}

// Site checks the name of a site or a region: 1 to 63 lower-case letters, digits and '-',
// beginning and ending with a letter or digit.
func Site(field, s string) error {
	if err := length(field, s, maxSite); err != nil {
		return err
	}
	for i := range len(s) {
		c := s[i]
		if c == '-' && (i == 0 || i == len(s)-1) {
			return &Error{field, "begins or ends with '-'"}
		}
		if c != '-' && !isDigit(c) && (c < 'a' || c > 'z') {
			return badCharacter(field, c, i, "lower-case letters, digits and '-'")
		}
	}
	return nil
}

// Modes returns the protocols under which sites can begin redistributions, in
// the order of their names.
func Modes() []string { return []string{"auto", "majority", "star"} }

// Mode checks that a protocol is in [Modes].
func Mode(field, s string) error {
	if slices.Contains(Modes(), s) {
		return nil
	}
	return &Error{field, "must be one of " + strings.Join(Modes(), ", ")}
}

// MaxVersion bounds the version of a cluster.
const MaxVersion = 65535

// Version checks the version of a cluster: 1 to [MaxVersion].
func Version(field string, v uint32) error { return within(field, int64(v), 1, MaxVersion) }

// Forecasts returns the forecasting models of a site, in the order of their names.
func Forecasts() []string {
	return []string{
		"ar", "ar-lad", "arima", "auto", "constant", "holt-winters", "lstm", "mean-rate", "none", "random-walk", "rls",
		"season", "season-lad", "seasonal-naive", "smoothing",
	}
}

// Forecast checks that a forecasting model is in [Forecasts].
func Forecast(field, s string) error {
	if slices.Contains(Forecasts(), s) {
		return nil
	}
	return &Error{field, "must be one of " + strings.Join(Forecasts(), ", ")}
}

// Tokens checks a number of tokens to acquire or release: 1 to [MaxTokens].
func Tokens(field string, n int64) error { return within(field, n, 1, MaxTokens) }

// Released checks a number of tokens to release: least to [MaxTokens].
func Released(field string, n, least int64) error { return within(field, n, least, MaxTokens) }

// Limit checks the limit of an entity: 0 to [MaxTokens].
func Limit(field string, n int64) error { return within(field, n, 0, MaxTokens) }

// PageSize checks a page size: 0, which stands for the default, to [MaxPageSize].
func PageSize(field string, n int64) error { return within(field, n, 0, MaxPageSize) }

// Operations checks the number of operations of a batch: 1 to [MaxOperations].
func Operations(field string, n int) error { return within(field, int64(n), 1, MaxOperations) }

// MinTokens checks the fewest tokens that an acquire of tokens accepts: 0, which stands
// for all of them, to tokens.
func MinTokens(field string, n, tokens int64) error { return within(field, n, 0, max(1, tokens)) }

// Attempt checks the number of a caller's attempt: 0, which stands for the
// first, to [MaxAttempt].
func Attempt(field string, n int64) error { return within(field, n, 0, MaxAttempt) }

// Wait checks how long a request may wait: 0 to 60 s.
func Wait(field string, d time.Duration) error { return period(field, d, 0, maxWait, "0s", "60s") }

// TTL checks the time to live of a lease: 1 s to 7 days.
func TTL(field string, d time.Duration) error {
	return period(field, d, minTTL, maxTTL, "1s", "168h (7 days)")
}

// period checks a duration against bounds; low and high name the bounds in its error.
func period(field string, d, least, most time.Duration, low, high string) error {
	switch {
	case d < least:
		return &Error{field, d.String() + ", at least " + low}
	case d > most:
		return &Error{field, d.String() + ", at most " + high}
	}
	return nil
}

// Age checks the greatest age of figures that a read allows: 0 to an hour.
func Age(field string, d time.Duration) error { return period(field, d, 0, maxAge, "0s", "1h") }

func length(field, s string, most int) error {
	switch {
	case s == "":
		return &Error{field, "empty, at least 1 character"}
	case len(s) > most:
		return &Error{field, strconv.Itoa(len(s)) + " bytes, at most " + strconv.Itoa(most)}
	}
	return nil
}

func within(field string, n, least, most int64) error {
	switch {
	case n < least:
		return &Error{field, strconv.FormatInt(n, 10) + ", at least " + strconv.FormatInt(least, 10)}
	case n > most:
		return &Error{field, strconv.FormatInt(n, 10) + ", at most " + strconv.FormatInt(most, 10)}
	}
	return nil
}

// segments checks all segments before the last slash, and the characters of the segment
// after it. It returns this last segment.
func segments(field, s string) (last string, err error) {
	start := 0
	for i := range len(s) {
		if s[i] == '/' {
			if err := segment(field, s[start:i]); err != nil {
				return "", err
			}
			start = i + 1
			continue
		}
		if !inSegment(s[i]) {
			return "", badCharacter(field, s[i], i, "letters, digits, '.', '_', '-' and '/'")
		}
	}
	return s[start:], nil
}

func segment(field, s string) error {
	switch s {
	case "":
		return &Error{field, "empty segment: begins or ends with '/', or has '//'"}
	case ".", "..":
		return &Error{field, "segment " + strconv.Quote(s) + " is not allowed"}
	}
	return nil
}

func badCharacter(field string, c byte, at int, allowed string) error {
	shown := strconv.QuoteRune(rune(c))
	if c > '~' {
		// Delete, or a byte of a longer character.
		shown = "byte 0x" + strconv.FormatUint(uint64(c), 16)
	}
	return &Error{field, shown + " at position " + strconv.Itoa(at+1) + ", allowed are " + allowed}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func inSegment(c byte) bool {
	return isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '.' || c == '_' || c == '-'
}
