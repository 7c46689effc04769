// Package site stands above its core.
package site

import (
	"example.com/house/internal/name"
	"example.com/house/site/core"
)

// New is needed by the app manager, and makes Site, Options and Port needed.
func New(...Options) *Site { return &Site{core: core.New(name.Check)} }

// Site is told of by New.
type Site struct{ core *core.Core }

// Step is a method of Site, and tells of Port.
func (*Site) Step(Port) {}

// Port is told of by a method of Site, and with it its values.
type Port int

// Closed is a value of Port.
const Closed Port = 0

// Limit is a number that belongs to no type.
const Limit = 1

// Options is told of by New.
type Options struct{ hidden Hidden }

// Bound is the constraint of Of, so Of makes it needed.
type Bound interface{ ~int }

// Of is needed by the app manager.
type Of[T Bound] struct{ of T }

// Hidden stands in a field that nobody outside sees.
type Hidden struct{}

// Tested is needed by a test of the app manager.
func Tested() {}

// Unused has no importer but its own test.
func Unused() {}
