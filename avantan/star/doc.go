// Package star is Avantan[*].
package star
