// Package appmgr stands above the site.
package appmgr

import "example.com/house/site"

// Start has no importer, for those that have one: what is one to those whose `one` is quoted?
func Start() { site.New(); _ = site.Of[int]{} }
