// Package rules reads the configuration files of envoyproxy/ratelimit, and finds the rule
// for a descriptor of a request. A rule is a rate quota: the name of its entity, a limit,
// and the length of its windows. Descriptors match as in
// envoyproxy/ratelimit.
//
// The package refuses to count, to read clocks, and to read the disk: package
// appmgr/ratelimit does. A file with a key that it does not know is at fault.
package rules
