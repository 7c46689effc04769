// Package core has a circle of three files.
package core

import "example.com/house/site/core/books"

// Core has the methods of three files.
type Core struct{ check func() }

// New makes a Core.
func New(check func()) *Core { return &Core{check} }

func (c *Core) a() { c.b(); books.Take() }
