package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
)

// text reads a string into v.
func text(field string, v *string) field {
	return func(t any) error {
		s, ok := t.(string)
		if !ok {
			return &name.Error{Field: field, Problem: "must be a string, not " + kind(t)}
		}
		*v = s
		return nil
	}
}

// truth reads a boolean into v.
func truth(field string, v *bool) field {
	return func(t any) error {
		b, ok := t.(bool)
		if !ok {
			return &name.Error{Field: field, Problem: "must be true or false, not " + kind(t)}
		}
		*v = b
		return nil
	}
}

// texts reads an array of strings into v.
func texts(field string, v *[]string) field {
	return func(t any) error {
		raw, ok := t.(nested)
		if !ok || raw[0] != '[' {
			return &name.Error{Field: field, Problem: "must be an array of strings, not " + kind(t)}
		}
		var values []any
		if err := json.Unmarshal(raw, &values); err != nil {
			return &name.Error{Field: field, Problem: "must be an array of strings"}
		}
		for _, value := range values {
			s, ok := value.(string)
			if !ok {
				return &name.Error{Field: field, Problem: "must be an array of strings alone"}
			}
			*v = append(*v, s)
		}
		return nil
	}
}

// object calls begin and reads an object of the given fields.
func object(key string, begin func(), fs fields) field {
	return func(t any) error {
		raw, ok := t.(nested)
		if !ok || raw[0] != '{' {
			return &name.Error{Field: key, Problem: "must be an object, not " + kind(t)}
		}
		begin()
		vs, err := decodeObject(raw, key+".", fs)
		if err != nil {
			return err
		}
		if len(vs) > 0 {
			return apierr.InvalidFields(vs...)
		}
		return nil
	}
}

// whole reads a whole number of least to most into v.
func whole(field string, least, most int64, v *int64) field {
	return func(t any) error {
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

// period reads a duration such as "2s" into v; check bounds it.
func period(field string, check func(string, time.Duration) error, v **durationpb.Duration) field {
	return func(t any) error {
		s, ok := t.(string)
		if !ok {
			return &name.Error{Field: field, Problem: `must be a duration in a string, such as "2s", not ` + kind(t)}
		}
		d, err := time.ParseDuration(s)
		if err != nil {
			return &name.Error{Field: field, Problem: `must be a duration such as "2s" or "500ms"`}
		}
		*v = durationpb.New(d)
		return check(field, d)
	}
}

// instant reads a time of RFC 3339 into v.
func instant(field string, v **timestamppb.Timestamp) field {
	return func(t any) error {
		s, ok := t.(string)
		if !ok {
			return &name.Error{Field: field, Problem: `must be a time in a string, such as "2026-01-02T15:04:05Z", not ` + kind(t)}
		}
		at, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			return &name.Error{Field: field, Problem: `must be a time of RFC 3339, such as "2026-01-02T15:04:05Z"`}
		}
		*v = timestamppb.New(at)
		return nil
	}
}
