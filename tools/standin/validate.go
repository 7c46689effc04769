package main

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// ValidateResourceConfig refuses a value for an attribute that only the provider sets.
// OpenTofu checks all else in a schema, and leaves this check to the provider.
func (s *server) ValidateResourceConfig(_ context.Context, r *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	found, err := validate(s.schema.ResourceSchemas[r.TypeName], r.Config)
	return &tfprotov6.ValidateResourceConfigResponse{Diagnostics: found}, err
}

// ValidateDataResourceConfig is ValidateResourceConfig for a data source.
func (s *server) ValidateDataResourceConfig(_ context.Context, r *tfprotov6.ValidateDataResourceConfigRequest) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	found, err := validate(s.schema.DataSourceSchemas[r.TypeName], r.Config)
	return &tfprotov6.ValidateDataResourceConfigResponse{Diagnostics: found}, err
}

func validate(schema *tfprotov6.Schema, config *tfprotov6.DynamicValue) ([]*tfprotov6.Diagnostic, error) {
	v, err := config.Unmarshal(schema.ValueType())
	if err != nil {
		return nil, err
	}
	return unsettable(schema.Block, v, tftypes.NewAttributePath())
}

// unsettable finds the attributes with a value that only the provider may set.
func unsettable(b *tfprotov6.SchemaBlock, v tftypes.Value, at *tftypes.AttributePath) ([]*tfprotov6.Diagnostic, error) {
	if v.IsNull() || !v.IsKnown() {
		return nil, nil
	}
	var fields map[string]tftypes.Value
	if err := v.As(&fields); err != nil {
		return nil, err
	}
	var found []*tfprotov6.Diagnostic
	for _, a := range b.Attributes {
		if a.Computed && !a.Optional && !fields[a.Name].IsNull() {
			found = append(found, &tfprotov6.Diagnostic{
				Severity: tfprotov6.DiagnosticSeverityError, Attribute: at.WithAttributeName(a.Name),
				Summary: "Value for unconfigurable attribute",
				Detail:  fmt.Sprintf("%q is decided by the provider, and cannot be set.", a.Name),
			})
		}
	}
	for _, n := range b.BlockTypes {
		inner := []tftypes.Value{fields[n.TypeName]}
		if n.Nesting != tfprotov6.SchemaNestedBlockNestingModeSingle {
			inner = nil
			if f := fields[n.TypeName]; f.IsNull() || !f.IsKnown() {
				continue
			} else if err := f.As(&inner); err != nil {
				return nil, err
			}
		}
		for _, i := range inner {
			// Blocks of a name share a path: the name says which are meant.
			more, err := unsettable(n.Block, i, at.WithAttributeName(n.TypeName))
			if err != nil {
				return nil, err
			}
			found = append(found, more...)
		}
	}
	return found, nil
}
