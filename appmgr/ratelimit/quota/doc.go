// Package quota serves Envoy's rate limit quota service
// (envoy.service.rate_limit_quota.v3): a proxy reports how many requests it sees, and is told
// how many it may let pass without asking. Each assignment is covered by leases of share of a
// rate quota, so all proxies together keep the limit, whoever is killed. The package refuses
// to count requests: proxies do, and sites lend the shares.
//
// A Core decides, without a clock, a network or a lock. A Service is the shell around it:
// streams of proxies on one side, sites on the other.
package quota
