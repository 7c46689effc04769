// Package session names requests by a session and a sequence: a client draws the name of a
// session once and counts its requests. A site finds the requests of a session by their
// sequences, and drops the records of answers that the client has received. The package refuses
// to know requests and answers.
//
// RIFL (Lee et al., SOSP 2015, section 3) and the sessions in Ongaro's thesis on Raft
// (section 6.3) work alike. There, a server leases sessions; here, a request's
// not_after bounds the time for which a site has to remember the request.
package session

import (
	"encoding/base64"
	"strconv"
)

// ID is the random name of a session: 72 bits.
type ID [Bytes]byte

const (
	// Bytes is the length of an ID.
	Bytes = 9
	// MaxSequence is the last sequence of a session.
	MaxSequence = 1<<40 - 1
	// MaxOpen bounds a session: the first request without an answer and the last request
	// are fewer than MaxOpen sequences apart. Beyond that a client begins another session.
	MaxOpen = 1 << 14

	prefix = "s."
	// letters is the length of an ID in a request id, head of all before the sequence.
	letters = Bytes / 3 * 4
	head    = len(prefix) + letters + 1
	// mostDigits is the length of MaxSequence in hexadecimal.
	mostDigits = 10
)

// Text begins the ids of a session's requests. Requests append their sequence, by Append.
func (id ID) Text() string { return prefix + base64.RawURLEncoding.EncodeToString(id[:]) + "." }

// Append appends a sequence, at most MaxSequence, to the Text of a session.
func Append(text []byte, sequence uint64) []byte { return strconv.AppendUint(text, sequence, 16) }

// Parse is the inverse: the session and the sequence of a request id. A request has a single id:
// another id with the same numbers is no id of a session.
func Parse(requestID string) (id ID, sequence uint64, ok bool) {
	if len(requestID) <= head || len(requestID) > head+mostDigits || requestID[:len(prefix)] != prefix || requestID[head-1] != '.' {
		return ID{}, 0, false
	}
	digits := requestID[head:]
	for i := range len(digits) {
		c := digits[i]
		switch {
		case '0' <= c && c <= '9':
			sequence = sequence<<4 | uint64(c-'0')
		case 'a' <= c && c <= 'f':
			sequence = sequence<<4 | uint64(c-'a'+10)
		default:
			return ID{}, 0, false
		}
	}
	if digits[0] == '0' && len(digits) > 1 {
		return ID{}, 0, false
	}
	// A fixed number of whole groups is decoded faster by hand: it is done for each request.
	text := requestID[len(prefix):]
	for i := range Bytes / 3 {
		a, b, c, d := sextet[text[4*i]], sextet[text[4*i+1]], sextet[text[4*i+2]], sextet[text[4*i+3]]
		if (a | b | c | d) == none {
			return ID{}, 0, false
		}
		id[3*i], id[3*i+1], id[3*i+2] = a<<2|b>>4, b<<4|c>>2, c<<6|d
	}
	return id, sequence, true
}

// none is the value of bytes that are no letter of base64. The values of letters are lower.
const none = 0xff

// sextet is the value of each letter of base64 for URLs (RFC 4648, section 5).
var sextet = func() (t [256]byte) {
	for i := range t {
		t[i] = none
	}
	for i, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
		t[c] = byte(i)
	}
	return t
}()
