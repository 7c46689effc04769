// Package ratelab measures rate quotas in real time: real sites in five regions, far from
// each other, under a demand that moves from region to region and exceeds the limits most of
// the time. A judge outside adds up all grants. It knows when each request was sent and
// answered, and nothing of the sites.
//
// The same load goes to envoyproxy/ratelimit, with a service in each region and a single
// redis in the first.
package ratelab
