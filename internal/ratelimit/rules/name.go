package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// The names of entities have segments: "ratelimit", the domain, an entry each, and the
// unit. An entry is its key, a dot and its value; without a value it is the key alone.
// Other characters than letters, digits, '.', '_' and '-' are written as "-x" and two
// hexadecimal digits, and so is the '-' before an 'x', and a '.' of a key. So no two
// descriptors have the same name.

const (
	// above is the first segment of all names.
	above = "ratelimit/"
	// maxName is the longest name of an entity, in bytes.
	maxName = 256
	// maxTemplate is the longest name of a template, in bytes.
	maxTemplate = 192
	// maxDomain is the longest segment of a domain, in bytes.
	maxDomain = 96
	// hashed begins the hash that ends a name that was too long. No escape looks like it.
	hashed = "-xh"
	// hashLength is the length of a hash, with hashed.
	hashLength = len(hashed) + 40
)

// Above returns the name that stands above the names of all entities of a domain.
func Above(domain string) string {
	d := escape(domain, false)
	if d == "" || strings.Trim(d, ".") == "" {
		// "" and "." and ".." are no segments.
		d = "-x" + d
	}
	return above + shorten(d, maxDomain, domain)
}

// entity returns the name of the entity of a domain and entries.
func entity(domain string, entries []Entry, unit string) string {
	first, most := Above(domain), maxName
	if strings.HasSuffix(unit, templates) {
		most = maxTemplate
	}
	length := len(first) + len(unit) + 2
	for _, e := range entries {
		length += len(e.Key) + len(e.Value) + 2
	}
	var b strings.Builder
	b.Grow(length)
	b.WriteString(first)
	b.WriteByte('/')
	for i, e := range entries {
		if i > 0 {
			b.WriteByte('/')
		}
		if e.Key == "" {
			b.WriteString("-x")
		}
		b.WriteString(escape(e.Key, true))
		if e.Value != "" {
			b.WriteByte('.')
			b.WriteString(escape(e.Value, false))
		}
	}
	if b.Len()+1+len(unit) <= most {
		b.WriteByte('/')
		b.WriteString(unit)
		return b.String()
	}
	whole := b.String()[len(first)+1:]
	return first + "/" + shorten(whole, most-len(first)-len(unit)-2, whole) + "/" + unit
}

// templates ends the names of templates.
const templates = "-keys"

// key returns the name of a template's key of values.
func key(template string, values []string) string {
	length := len(template)
	for _, v := range values {
		length += len(v) + 1
	}
	var b strings.Builder
	b.Grow(length)
	b.WriteString(template)
	for _, v := range values {
		b.WriteByte('/')
		if v == "" || strings.Trim(v, ".") == "" {
			b.WriteString("-x")
		}
		b.WriteString(escape(v, false))
	}
	if b.Len() <= maxName {
		return b.String()
	}
	whole := b.String()[len(template)+1:]
	return template + "/" + shorten(whole, maxName-len(template)-1, whole)
}

// shorten returns an escaped text of at most that many bytes. A longer text ends with the
// hash of the whole.
func shorten(escaped string, most int, whole string) string {
	if len(escaped) <= most {
		return escaped
	}
	sum := sha256.Sum256([]byte(whole))
	return strings.TrimRight(escaped[:most-hashLength], "/") + hashed + hex.EncodeToString(sum[:20])
}

const digits = "0123456789ABCDEF"

// escape writes a text in the characters of a name.
func escape(s string, key bool) string {
	plain := true
	for i := range len(s) {
		plain = plain && !escaped(s, i, key)
	}
	if plain {
		return s
	}
	b := make([]byte, 0, len(s)+16)
	for i := range len(s) {
		if c := s[i]; escaped(s, i, key) {
			b = append(b, '-', 'x', digits[c>>4], digits[c&15])
		} else {
			b = append(b, c)
		}
	}
	return string(b)
}

// escaped reports whether the character at i is written as an escape.
func escaped(s string, i int, key bool) bool {
	c := s[i]
	switch {
	case '0' <= c && c <= '9', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '_':
		return false
	case c == '.':
		return key
	case c == '-':
		return i+1 < len(s) && s[i+1] == 'x'
	}
	return true
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
