// Package appmgr stands above the site.
package appmgr

import "example.com/house/site"

// Start has no importer: there is no command here.
func Start() { site.New() }
