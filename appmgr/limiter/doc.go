// Package limiter bounds the requests under way at an app manager, of both APIs together.
// It counts requests, refuses them while the app manager stops, and keeps a panic from
// ending the process. It does not know callers' rights, and never queues a request: a
// request beyond a bound is refused at once.
package limiter
