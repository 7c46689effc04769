package core

import (
	"github.com/samya-db/samya/avantan"
)

// Tokens counts tokens.
type Tokens = avantan.Tokens

// SiteID is the name of a site.
type SiteID = avantan.SiteID

// Tick is logical time in milliseconds.
type Tick = avantan.Tick
