// Package backends finds the engines below the laboratory's partitioned store: all
// engines of package engine, and pebble. The product does without pebble and its
// modules.
package backends

import (
	"fmt"
	"slices"
	"strings"

	"github.com/samya-db/samya/kvpart/engine"
)

// Lookup returns the backend of a name. It fails with engine.ErrBackend.
func Lookup(name string) (engine.Factory, error) {
	if name == "pebble" {
		return engine.Factory{Open: openPebble, Durable: true}, nil
	}
	f, err := engine.Lookup(name)
	if err != nil {
		return f, fmt.Errorf("%w %q: there are %s", engine.ErrBackend, name, strings.Join(Names(), ", "))
	}
	return f, nil
}

// Names returns the names of all backends, in ascending order.
func Names() []string {
	names := append(engine.Names(), "pebble")
	slices.Sort(names)
	return names
}
