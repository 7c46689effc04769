// Package books stands below the core.
package books

// Take is needed by the core.
func Take() {}
