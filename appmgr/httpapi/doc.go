// Package httpapi serves the public API as HTTP/JSON. It translates requests and answers of
// package grpcapi, and refuses whatever the OpenAPI document does not have: unknown paths,
// fields and parameters. It takes no decision about tokens, and its routes come from the
// table of package methods.
package httpapi
