// Package grpcapi is the public API of an app manager as gRPC serves it. It checks each
// request, once, and hands changes and movements of tokens to package route; reads are
// package reads'. It keeps no state of entities, and leaves the rights of callers to package
// access.
package grpcapi
