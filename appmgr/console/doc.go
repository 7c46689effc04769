// Package console serves samya's web console: its pages, which are part of the program, and
// a server that hands them to the person at this machine.
//
// The pages hold no data. Whoever reaches the listener may load them, and each figure that
// they show comes from the HTTP API, under the API's own rules for callers. The package
// knows no site, calls nothing but an app manager's HTTP API, and refuses to send anything
// that is not among its files.
package console
