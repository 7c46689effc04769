package main

import (
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// fill sets every null or unknown attribute that the provider may set. The new value is
// the result of value for the attribute's name and type.
func fill(b *tfprotov6.SchemaBlock, v tftypes.Value, value func(string, tftypes.Type) tftypes.Value) (tftypes.Value, error) {
	if v.IsNull() || !v.IsKnown() {
		return v, nil
	}
	var fields map[string]tftypes.Value
	if err := v.As(&fields); err != nil {
		return v, err
	}
	for _, a := range b.Attributes {
		if f := fields[a.Name]; a.Computed && (f.IsNull() || !f.IsKnown()) {
			fields[a.Name] = value(a.Name, a.Type)
		}
	}
	for _, n := range b.BlockTypes {
		f := fields[n.TypeName]
		if f.IsNull() || !f.IsKnown() {
			continue
		}
		if n.Nesting == tfprotov6.SchemaNestedBlockNestingModeSingle {
			inner, err := fill(n.Block, f, value)
			if err != nil {
				return v, fmt.Errorf("%s: %w", n.TypeName, err)
			}
			fields[n.TypeName] = inner
			continue
		}
		var all []tftypes.Value
		if err := f.As(&all); err != nil {
			return v, err
		}
		within := value
		if n.Nesting == tfprotov6.SchemaNestedBlockNestingModeSet {
			// OpenTofu finds an element of a set by its content, which must not change.
			within = func(_ string, t tftypes.Type) tftypes.Value { return tftypes.NewValue(t, nil) }
		}
		for i := range all {
			inner, err := fill(n.Block, all[i], within)
			if err != nil {
				return v, fmt.Errorf("%s: %w", n.TypeName, err)
			}
			all[i] = inner
		}
		fields[n.TypeName] = tftypes.NewValue(f.Type(), all)
	}
	return tftypes.NewValue(v.Type(), fields), nil
}

// serial makes invented values differ.
var serial atomic.Int64

// one returns the number of objects that exist without having been made: it never
// changes.
func one() int64 { return 1 }

// next returns the number of a new object.
func next() int64 { return serial.Add(1) }

// invent returns a function that makes up values. Lists and sets of strings have three
// elements, as zones do; other collections are empty, and objects are null.
func invent(kind string, number func() int64) func(string, tftypes.Type) tftypes.Value {
	return func(name string, t tftypes.Type) tftypes.Value {
		text := func(n int64) string { return kind + "-" + name + "-" + strconv.FormatInt(n, 10) }
		switch {
		case t.Is(tftypes.String):
			return tftypes.NewValue(t, text(number()))
		case t.Is(tftypes.Number):
			return tftypes.NewValue(t, number())
		case t.Is(tftypes.Bool):
			return tftypes.NewValue(t, false)
		case t.Equal(tftypes.List{ElementType: tftypes.String}), t.Equal(tftypes.Set{ElementType: tftypes.String}):
			return tftypes.NewValue(t, []tftypes.Value{
				tftypes.NewValue(tftypes.String, text(1)), tftypes.NewValue(tftypes.String, text(2)), tftypes.NewValue(tftypes.String, text(3)),
			})
		case t.Is(tftypes.List{}), t.Is(tftypes.Set{}):
			return tftypes.NewValue(t, []tftypes.Value{})
		case t.Is(tftypes.Map{}):
			return tftypes.NewValue(t, map[string]tftypes.Value{})
		}
		return tftypes.NewValue(t, nil)
	}
}
