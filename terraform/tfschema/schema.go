// Package tfschema holds what providers of OpenTofu and Terraform accept and
// tell, and reads it out of the bindings that are made of a provider's schema for
// another language; it refuses what it does not understand, rather than to let
// an argument pass that nobody has.
package tfschema

import (
	"encoding/json"
	"fmt"
	"os"
)

// Provider is what is known of one provider.
type Provider struct {
	// Notice tells where it comes from and under which licence it stands.
	Notice string `json:"notice"`
	// Name is the provider's, such as google, and Version its version.
	Name    string `json:"name"`
	Version string `json:"version"`
	// Config is what the provider itself is told.
	Config *Block `json:"config"`
	// Resources and Data are the kinds that are used, by their names.
	Resources map[string]*Block `json:"resources"`
	Data      map[string]*Block `json:"data,omitempty"`
}

// Block is the arguments and blocks within a resource or a block.
type Block struct {
	Attributes map[string]*Attribute `json:"attributes,omitempty"`
	Blocks     map[string]*Nested    `json:"blocks,omitempty"`
}

// Attribute is an argument, or what is told only.
type Attribute struct {
	// Type is as cty writes types: "string", ["set","string"], ….
	Type json.RawMessage `json:"type"`
	// Required must be set; Computed cannot be. Others may be set or left out.
	Required bool `json:"required,omitempty"`
	Computed bool `json:"computed,omitempty"`
}

// Nested is a block that can stand within another.
type Nested struct {
	// Nesting is list, set or single; Max bounds how many there can be, 0 does not.
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
