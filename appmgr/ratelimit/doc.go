// Package ratelimit answers proxies that ask whether a request may pass: it serves
// Envoy's rate limit service (envoy.service.ratelimit.v3) from rate quotas. The rules are
// files of envoyproxy/ratelimit, which package rules reads. Each rule counts in an entity,
// made at its first use.
//
// A request with several descriptors takes the tokens of all or of none. The package
// refuses to count by itself: sites grant, and a decision is as exact as an acquire.
package ratelimit
