// Package sim imports what stands above its folder.
package sim

import "example.com/house/site"

// Run is not part of the product.
func Run() { site.New() }
