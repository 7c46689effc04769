// Package tfschema holds the schemas of providers of OpenTofu and Terraform, and reads
// them out of bindings generated for another language; it refuses text that it does not
// understand, rather than let an argument pass that no provider has.
package tfschema

import (
	"encoding/json"
	"fmt"
	"os"
)

// Provider is the schema of a provider, as far as the configurations use it.
type Provider struct {
	// Notice tells the source of the schema and its licence.
	Notice string `json:"notice"`
	// Name is the name of the provider, such as google; Version is its version.
	Name    string `json:"name"`
	Version string `json:"version"`
	// Config is the configuration of the provider itself.
	Config *Block `json:"config"`
	// Resources and Data are the used kinds by their names.
	Resources map[string]*Block `json:"resources"`
	Data      map[string]*Block `json:"data,omitempty"`
}

// Block is the content of a resource or of a block.
type Block struct {
	Attributes map[string]*Attribute `json:"attributes,omitempty"`
	Blocks     map[string]*Nested    `json:"blocks,omitempty"`
}

// Attribute is an argument or a computed attribute.
type Attribute struct {
	// Type is in cty's form of types: "string", ["set","string"], ….
	Type json.RawMessage `json:"type"`
	// Required says that a configuration must set the attribute, Computed that it
	// cannot. Other attributes are optional.
	Required bool `json:"required,omitempty"`
	Computed bool `json:"computed,omitempty"`
}

// Nested is a block within another block.
type Nested struct {
	// Nesting is list, set or single. Min and Max bound the number of blocks; 0: no
	// bound.
	Nesting string `json:"nesting"`
	Min     int64  `json:"min,omitempty"`
	Max     int64  `json:"max,omitempty"`
	Block   *Block `json:"block"`
}

// Read reads a provider's file.
func Read(path string) (*Provider, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read a provider's schema: %w", err)
	}
	var p Provider
	if err := json.Unmarshal(b, &p); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return &p, nil
}
