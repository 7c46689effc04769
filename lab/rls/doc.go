// Package rls measures decisions of the rate limit service of Envoy
// (envoy.service.ratelimit.v3) on a single machine: a site of samya that serves Envoy, an app
// manager before a site, the service of envoyproxy/ratelimit before redis, and a bare gRPC
// server that answers the same messages at once, which is the most that there can be. A
// Gubernator is asked the same in its own API.
//
// Rounds measure all of them in turn. Figures are medians over the rounds, ratios medians of the
// ratios within a round.
package rls
