// Package frames carries the stream of operations (TokenService.Stream) over plain frames:
// its messages, each behind four bytes, straight on the connection. It is the fast path of
// samya's own programs. It serves no other method, and stands beside gRPC on the same port:
// whoever does not know frames goes on with gRPC.
//
// # On the wire
//
// A client that speaks frames begins with the bytes "samya/1\n", where HTTP/2 begins with
// "PRI * HTTP/2.0". If the port has TLS, they come within it. Another first line stands
// for another version of the frames. The server answers with the same bytes. Any other
// answer, or none, has the client go on with gRPC: the server is older, or a proxy stands
// before it.
//
// Then both sides send frames: a byte with the kind, three bytes with the length, most
// significant first, and the content.
//
//	hello    client, server  first: the name, the credential, the largest message taken
//	message  client, server  a message of the stream, as protobuf
//	end      server          last: the status of the stream, a google.rpc.Status
//	ping     client, server  wants an answer
//	pong     client, server  the answer
//
// # The same as on gRPC
//
// The server hands the stream to the interceptors and the handler of its gRPC server, with
// the same context: peer, certificate, token. So roles, limits, audit and metrics are the
// same. A client gets the status with its details. A side that hears nothing for
// quietTime asks, and ends the connection without an answer within patience.
//
// # Less work for the scheduler
//
// On Linux connections read and write by system calls that Go's scheduler does not see and
// that never wait, also beneath TLS. Where a socket is not ready, goroutines wait as usual.
// A call that the scheduler sees wakes its watching thread, which then looks at all threads
// every 20 µs: up to three times an exchange of messages, at a cost of two changes of
// threads each.
package frames
