// Package client is for users: its names need no importer.
package client

// Dial has none.
func Dial() {}
