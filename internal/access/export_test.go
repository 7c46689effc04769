package access

import (
	"maps"
	"slices"
)

// Methods returns all methods with a rule.
func Methods() []string { return slices.Collect(maps.Keys(rules)) }
