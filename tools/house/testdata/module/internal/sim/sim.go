// Package sim imports a package above its folder.
package sim

import "example.com/house/site"

// Run is not part of the product.
func Run() { site.New() }
