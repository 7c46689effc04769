package httpapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/samya-db/samya/appmgr/grpcapi"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
)

// numbers are the bounds of whole numbers in requests, by field.
var numbers = map[protoreflect.Name]struct{ least, most int64 }{
	"attempt":             {1, name.MaxAttempt},
	"expected_generation": {0, grpcapi.MaxVersion},
	"expected_version":    {0, grpcapi.MaxVersion},
	"generation":          {1, grpcapi.MaxVersion},
	"held":                {-name.MaxTokens, name.MaxTokens},
	"in_use":              {0, name.MaxTokens},
	"limit":               {0, name.MaxTokens},
	"min_tokens":          {1, name.MaxTokens},
	"net":                 {-name.MaxTokens, name.MaxTokens},
	"page_size":           {0, name.MaxPageSize},
	"since_ms":            {0, name.MaxTokens},
	"tokens":              {1, name.MaxTokens},
	"until_ms":            {1, name.MaxTokens},
	"version":             {1, name.MaxVersion},
}

// durations check the durations in requests, by field.
var durations = map[protoreflect.Name]func(field string, d time.Duration) error{
	"max_age": name.Age,
	"ttl":     name.TTL,
	"wait":    name.Wait,
}

// fieldsOf returns readers for the fields of m, a request, except for the fields that its
// path has set. A number or duration without bounds above has no reader, and neither has a
// kind of field that needs a reader of its own.
func fieldsOf(m proto.Message) fields { return fieldsBelow(m.ProtoReflect(), "") }

// fieldsBelow is fieldsOf; prefix comes before names in errors.
func fieldsBelow(m protoreflect.Message, prefix string) fields {
	fs, all := fields{}, m.Descriptor().Fields()
	for i := range all.Len() {
		d := all.Get(i)
		// App managers number their tries by relay.
		if m.Has(d) || d.Name() == "relay" {
			continue
		}
		if read := readerOf(m, d, prefix+string(d.Name())); read != nil {
			fs[string(d.Name())] = read
		}
	}
	return fs
}

// readerOf returns the reader of a field of m; nil if it has none.
func readerOf(m protoreflect.Message, d protoreflect.FieldDescriptor, field string) field {
	set := func(v any) { m.Set(d, protoreflect.ValueOf(v)) }
	switch kind := d.Kind(); {
	case d.IsList():
		switch kind {
		case protoreflect.StringKind:
		case protoreflect.MessageKind:
			list := m.Mutable(d).List()
			return objects(field, func() fields {
				inner := list.AppendMutable().Message()
				return fieldsBelow(inner, field+".")
			})
		default:
			return nil
		}
		return texts(field, func(s string) { m.Mutable(d).List().Append(protoreflect.ValueOfString(s)) })
	case kind == protoreflect.StringKind:
		return text(field, set)
	case kind == protoreflect.BoolKind:
		return truth(field, set)
	case kind == protoreflect.MessageKind:
		inner := m.NewField(d).Message()
		switch inner.Interface().(type) {
		case *durationpb.Duration:
			if check := durations[d.Name()]; check != nil {
				return period(field, check, func(d *durationpb.Duration) { set(d.ProtoReflect()) })
			}
			return nil
		case *timestamppb.Timestamp:
			return instant(field, func(t *timestamppb.Timestamp) { set(t.ProtoReflect()) })
		}
		return object(field, func() { set(inner) }, fieldsBelow(inner, field+"."))
	}
	bound, ok := numbers[d.Name()]
	if !ok {
		return nil
	}
	return whole(field, bound.least, bound.most, func(v int64) {
		switch d.Kind() {
		case protoreflect.Int32Kind:
			set(int32(v))
		case protoreflect.Uint32Kind:
			set(uint32(v))
		case protoreflect.Uint64Kind:
			set(uint64(v))
		default:
			set(v)
		}
	})
}

// missing are the errors about required fields that a request lacks, if they say more.
var missing = map[string]string{"parent": "missing; empty for none"}

// need makes a field required: the returned function returns an error if the field was not
// given.
func (fs fields) need(key string) (check func() error) {
	read, given := fs[key], false
	fs[key] = func(t any) error {
		given = true
		return read(t)
	}
	return func() error {
		if !given {
			return apierr.Invalid(key, cmp.Or(missing[key], "missing"))
		}
		return nil
	}
}

// text reads a string and passes it to set.
func text(field string, set func(any)) field {
	return func(t any) error {
		s, ok := t.(string)
		if !ok {
			return &name.Error{Field: field, Problem: "must be a string, not " + kind(t)}
		}
		set(s)
		return nil
	}
}

// truth reads a boolean and passes it to set.
func truth(field string, set func(any)) field {
	return func(t any) error {
		b, ok := t.(bool)
		if !ok {
			return &name.Error{Field: field, Problem: "must be true or false, not " + kind(t)}
		}
		set(b)
		return nil
	}
}

// texts reads an array of strings and passes each to add.
func texts(field string, add func(string)) field {
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
			add(s)
		}
		return nil
	}
}

// objects reads an array of objects; next returns the fields of the next one.
func objects(key string, next func() fields) field {
	return func(t any) error {
		raw, ok := t.(nested)
		if !ok || raw[0] != '[' {
			return &name.Error{Field: key, Problem: "must be an array of objects, not " + kind(t)}
		}
		var values []json.RawMessage
		if err := json.Unmarshal(raw, &values); err != nil {
			return &name.Error{Field: key, Problem: "must be an array of objects"}
		}
		for _, value := range values {
			if len(value) == 0 || value[0] != '{' {
				return &name.Error{Field: key, Problem: "must be an array of objects alone"}
			}
			if err := object(key, func() {}, next())(nested(value)); err != nil {
				return err
			}
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

// whole reads a whole number of least to most and passes it to set.
func whole(field string, least, most int64, set func(int64)) field {
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
		set(i)
		return nil
	}
}

// period reads a duration such as "2s" and passes it to set; check bounds it.
func period(field string, check func(string, time.Duration) error, set func(*durationpb.Duration)) field {
	return func(t any) error {
		s, ok := t.(string)
		if !ok {
			return &name.Error{Field: field, Problem: `must be a duration in a string, such as "2s", not ` + kind(t)}
		}
		d, err := time.ParseDuration(s)
		if err != nil {
			return &name.Error{Field: field, Problem: `must be a duration such as "2s" or "500ms"`}
		}
		set(durationpb.New(d))
		return check(field, d)
	}
}

// instant reads a time of RFC 3339 and passes it to set.
func instant(field string, set func(*timestamppb.Timestamp)) field {
	return func(t any) error {
		s, ok := t.(string)
		if !ok {
			return &name.Error{Field: field, Problem: `must be a time in a string, such as "2026-01-02T15:04:05Z", not ` + kind(t)}
		}
		at, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			return &name.Error{Field: field, Problem: `must be a time of RFC 3339, such as "2026-01-02T15:04:05Z"`}
		}
		set(timestamppb.New(at))
		return nil
	}
}
