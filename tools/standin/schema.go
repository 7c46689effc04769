package main

import (
	"encoding/json"
	"fmt"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// provider is a file of terraform/tfschema.
type provider struct {
	Config    *block            `json:"config"`
	Resources map[string]*block `json:"resources"`
	Data      map[string]*block `json:"data"`
}

type block struct {
	Attributes map[string]*attribute `json:"attributes"`
	Blocks     map[string]*nested    `json:"blocks"`
}

type attribute struct {
	Type     json.RawMessage `json:"type"`
	Required bool            `json:"required"`
	Computed bool            `json:"computed"`
}

type nested struct {
	Nesting string `json:"nesting"`
	Min     int64  `json:"min"`
	Max     int64  `json:"max"`
	Block   *block `json:"block"`
}

// schema returns the block in the form of the protocol. An attribute that a
// configuration may leave out counts as computed too: the file does not tell the two
// apart.
func (b *block) schema() (*tfprotov6.Schema, error) {
	inner, err := b.protocol()
	if err != nil {
		return nil, err
	}
	return &tfprotov6.Schema{Block: inner}, nil
}

func (b *block) protocol() (*tfprotov6.SchemaBlock, error) {
	out := &tfprotov6.SchemaBlock{}
	for name, a := range b.Attributes {
		t, err := tftypes.ParseJSONType(a.Type)
		if err != nil {
			return nil, fmt.Errorf("type of %s: %w", name, err)
		}
		out.Attributes = append(out.Attributes, &tfprotov6.SchemaAttribute{
			Name: name, Type: t, Required: a.Required, Optional: !a.Required && !a.Computed, Computed: !a.Required,
		})
	}
	for name, n := range b.Blocks {
		inner, err := n.Block.protocol()
		if err != nil {
			return nil, fmt.Errorf("block %s: %w", name, err)
		}
		nesting := map[string]tfprotov6.SchemaNestedBlockNestingMode{
			"list": tfprotov6.SchemaNestedBlockNestingModeList, "set": tfprotov6.SchemaNestedBlockNestingModeSet,
			"single": tfprotov6.SchemaNestedBlockNestingModeSingle,
		}[n.Nesting]
		if nesting == 0 {
			return nil, fmt.Errorf("block %s: nesting %q", name, n.Nesting)
		}
		out.BlockTypes = append(out.BlockTypes, &tfprotov6.SchemaNestedBlock{
			TypeName: name, Block: inner, Nesting: nesting, MinItems: n.Min, MaxItems: n.Max,
		})
	}
	return out, nil
}
