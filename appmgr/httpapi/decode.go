package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/samya-db/samya/internal/apierr"
)

// field reads the value of a field of a JSON object: a string, a json.Number, a bool,
// nil, or a nested object or array.
type field func(any) error

// nested is an object or an array, as valid JSON.
type nested json.RawMessage

// fields are the fields an object may have, by name.
type fields map[string]field

// smallBody is the size of the buffers that requests share, in bytes.
const smallBody = 4 << 10

var buffers = sync.Pool{New: func() any { return new(make([]byte, 0, smallBody)) }}

// readJSON reads a request's body and gives it to decode, which must not keep it.
// Its own errors are *apierr.Errors.
func readJSON(w http.ResponseWriter, r *http.Request, most int64, decode func([]byte) error) error {
	if err := checkMedia(r); err != nil {
		return err
	}
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	body, err := readBody(w, r, most, (*buffer)[:0])
	if err != nil {
		return err
	}
	return decode(body)
}

func checkMedia(r *http.Request) error {
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return apierr.New(apierr.UnsupportedMediaType, "content encoding %.64q; send the body as it is", e)
	}
	ct := r.Header.Get("Content-Type")
	if ct == "" || ct == "application/json" {
		return nil
	}
	// `curl -d` declares a form whatever it sends; a body that really is a form fails to
	// parse.
	m, _, err := mime.ParseMediaType(ct)
	if err != nil || m != "application/json" && m != "application/x-www-form-urlencoded" {
		return apierr.New(apierr.UnsupportedMediaType, "content type %.64q; send application/json", ct)
	}
	return nil
}

// readBody reads the body within bodyTime and at most `most` bytes, into the buffer if the
// body fits.
func readBody(w http.ResponseWriter, r *http.Request, most int64, buffer []byte) ([]byte, error) {
	tooLarge := func() error { return apierr.New(apierr.BodyTooLarge, "the body is longer than %d bytes", most) }
	if r.ContentLength > most {
		return nil, tooLarge()
	}
	// A server-wide read time-out would also end requests that wait for tokens.
	// Where no deadline can be set there is no connection to protect.
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(bodyTime))
	var body []byte
	var err error
	if n := r.ContentLength; n >= 0 && n <= int64(cap(buffer)) {
		// If the body is shorter than the declared length, reading fails.
		body = buffer[:n]
		_, err = io.ReadFull(r.Body, body)
	} else {
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	}
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, tooLarge()
		}
		e := apierr.New(apierr.MalformedJSON, "the body ended before it was complete")
		e.Err = err
		return nil, e
	}
	_ = rc.SetReadDeadline(time.Time{})
	return body, nil
}

// decodeJSON reads a body: a JSON object of known fields, each at most once. Its error is
// an *apierr.Error that names the fault.
func decodeJSON(body []byte, fs fields) error {
	malformed := func(format string, args ...any) error { return apierr.New(apierr.MalformedJSON, format, args...) }
	if len(bytes.TrimSpace(body)) == 0 {
		return malformed("the body is empty; a JSON object is wanted")
	}
	if !utf8.Valid(body) {
		return malformed("the body is not UTF-8")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(body, &whole); err != nil {
		if s, ok := errors.AsType[*json.SyntaxError](err); ok {
			return malformed("at byte %d: %v", s.Offset, s)
		}
		return malformed("%v", err)
	}
	if body = bytes.TrimSpace(body); body[0] != '{' {
		return malformed("the body is not a JSON object")
	}
	vs, err := decodeObject(body, "", fs)
	if err != nil {
		return err
	}
	if len(vs) > 0 {
		return apierr.InvalidFields(vs...)
	}
	return nil
}

// decodeObject reads an object, which is valid JSON. prefix comes before the names of its
// fields in errors. decodeObject returns the faults of values of known fields, and fails
// at the first unknown field.
func decodeObject(object []byte, prefix string, fs fields) (vs []apierr.Violation, err error) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if _, err := dec.Token(); err != nil {
		return nil, apierr.New(apierr.MalformedJSON, "%v", err)
	}
	given := map[string]bool{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, apierr.New(apierr.MalformedJSON, "%v", err)
		}
		k, _ := key.(string)
		read, known := fs[k]
		switch {
		case !known:
			return nil, apierr.Invalid(prefix+shorten(k), "unknown field")
		case given[k]:
			return nil, apierr.Invalid(prefix+k, "given twice")
		}
		given[k] = true
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, apierr.New(apierr.MalformedJSON, "%v", err)
		}
		value, err := valueOf(raw)
		if err != nil {
			return nil, err
		}
		if err := read(value); err != nil {
			vs = append(vs, apierr.FromName(err).Violations...)
		}
	}
	return vs, nil
}

// valueOf returns a value as a field reads it.
func valueOf(raw json.RawMessage) (any, error) {
	if raw[0] == '{' || raw[0] == '[' {
		return nested(raw), nil
	}
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return nil, apierr.New(apierr.MalformedJSON, "%v", err)
	}
	return v, nil
}

// shorten bounds a field name that a client made up.
func shorten(s string) string {
	const most = 64
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// kind names the JSON type of a value.
func kind(t any) string {
	switch t := t.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case json.Number:
		return "a number"
	case nested:
		if t[0] == '{' {
			return "an object"
		}
		return "an array"
	}
	return "another type"
}
