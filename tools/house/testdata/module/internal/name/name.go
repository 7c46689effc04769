// Package name stands at the bottom.
package name

// Check is needed by the site.
func Check() {}
