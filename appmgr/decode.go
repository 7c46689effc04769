package appmgr

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
)

// field reads the value of one field of a JSON object. The token is a string,
// a json.Number, a bool, nil, or a json.Delim where an object or array begins.
type field func(json.Token) error

// fields are those an object may have.
type fields map[string]field

// readJSON reads a request's body, one JSON object of known fields, each at
// most once. Its error is an *apierr.Error that names what is wrong.
func readJSON(w http.ResponseWriter, r *http.Request, most int64, fs fields) error {
	if err := checkMedia(r); err != nil {
		return err
	}
	body, err := readBody(w, r, most)
	if err != nil {
		return err
	}
	return decodeJSON(body, fs)
}

func checkMedia(r *http.Request) error {
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return apierr.New(apierr.UnsupportedMediaType, "content encoding %.64q; send the body as it is", e)
	}
	ct := r.Header.Get("Content-Type")
	if ct == "" {
		return nil
	}
	// A form is what `curl -d` declares whatever it sends; a body that really is
	// one fails to parse.
	m, _, err := mime.ParseMediaType(ct)
	if err != nil || m != "application/json" && m != "application/x-www-form-urlencoded" {
		return apierr.New(apierr.UnsupportedMediaType, "content type %.64q; send application/json", ct)
	}
	return nil
}

// readBody reads the body within the time and size it may take.
func readBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	tooLarge := apierr.New(apierr.BodyTooLarge, "the body is longer than %d bytes", most)
	if r.ContentLength > most {
		return nil, tooLarge
	}
	// A server-wide read time-out would also end requests that wait for tokens.
	// Where no deadline can be set there is no connection to protect.
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(bodyTime))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, tooLarge
		}
		e := apierr.New(apierr.MalformedJSON, "the body ended before it was complete")
		e.Err = err
		return nil, e
	}
	_ = rc.SetReadDeadline(time.Time{})
	return body, nil
}

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
	// From here on the body is known to be one valid JSON value.
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return malformed("the body is not a JSON object")
	}
	given := map[string]bool{}
	var vs []apierr.Violation
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return malformed("%v", err)
		}
		k, _ := key.(string)
		var value any
		read, known := fs[k]
		switch {
		case !known:
			return apierr.Invalid(shorten(k), "unknown field")
		case given[k]:
			return apierr.Invalid(k, "given twice")
		}
		given[k] = true
		if value, err = dec.Token(); err != nil {
			return malformed("%v", err)
		}
		if err := read(value); err != nil {
			if _, nested := value.(json.Delim); nested {
				// What is inside was not read; nothing after it can be judged.
				return apierr.FromName(err)
			}
			vs = append(vs, apierr.FromName(err).Violations...)
		}
	}
	if len(vs) > 0 {
		return apierr.InvalidFields(vs...)
	}
	return nil
}

// shorten bounds a field name that a client made up.
func shorten(s string) string {
	const most = 64
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// text reads a string into v.
func text(field string, v *string) field {
	return func(t json.Token) error {
		s, ok := t.(string)
		if !ok {
			return &name.Error{Field: field, Problem: "must be a string, not " + kind(t)}
		}
		*v = s
		return nil
	}
}

// whole reads a whole number of least to most into v.
func whole(field string, least, most int64, v *int64) field {
	return func(t json.Token) error {
		n, ok := t.(json.Number)
		if !ok {
			return &name.Error{Field: field, Problem: "must be a number, not " + kind(t)}
		}
		i, err := strconv.ParseInt(n.String(), 10, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return &name.Error{Field: field, Problem: fmt.Sprintf(
				"must be a whole number without fraction or exponent, at least %d and at most %d", least, most)}
		}
		switch {
		case i < least:
			return &name.Error{Field: field, Problem: fmt.Sprintf("must be at least %d", least)}
		case i > most:
			return &name.Error{Field: field, Problem: fmt.Sprintf("must be at most %d", most)}
		}
		*v = i
		return nil
	}
}

// period reads a duration such as "2s" into v.
func period(field string, v **time.Duration) field {
	return func(t json.Token) error {
		s, ok := t.(string)
		if !ok {
			return &name.Error{Field: field, Problem: `must be a duration in a string, such as "2s", not ` + kind(t)}
		}
		d, err := time.ParseDuration(s)
		if err != nil {
			return &name.Error{Field: field, Problem: `must be a duration such as "2s" or "500ms"`}
		}
		*v = &d
		return name.Wait(field, d)
	}
}

// kind names the JSON type of a token.
func kind(t json.Token) string {
	switch t := t.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case json.Number:
		return "a number"
	case json.Delim:
		if t == '{' {
			return "an object"
		}
		return "an array"
	}
	return "another type"
}
