// Package docs holds the pages of the documentation that the program itself shows. It
// refuses to hold code.
package docs

import _ "embed" // for the pages

// Runbooks is the page of the runbooks: a section for each finding of `samya doctor`.
//
//go:embed runbooks.md
var Runbooks string
