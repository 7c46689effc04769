// Package client acquires and releases tokens of samya for programs in Go. It
// refuses to guess: an operation that may or may not have been done is repeated
// in a way that can do it only once, and where even that comes to no answer the
// error says so and how to go on.
//
//	c, err := client.New(client.Config{
//		Region:  "us",
//		Targets: []client.Target{{Address: "am-us:7000", Region: "us"}, {Address: "am-eu:7000", Region: "eu"}},
//	})
//	grant, err := c.Acquire(ctx, "acme/seats", 3)
//	switch {
//	case errors.Is(err, client.ErrOutOfTokens): // The *client.Error says how many are left.
//	case errors.Is(err, client.ErrOutcomeUnknown): // Keep the error: client.Resume(err) goes on from it.
//	}
//
// A Client is for the whole program: its callers share one stream to each target,
// and what they ask for at the same time travels in the same messages. Targets
// are app managers or sites, which serve the same calls.
//
// # Under failure
//
// A call goes to the nearest target that answers: those of the own region first,
// then by measured round trip. When a target is down or falls silent the next is
// asked; when it is back, it is preferred again.
//
// Each call has one request id, kept over all its tries. Where a try was provably
// not begun (it was not sent, the target is overloaded or about to stop) it is
// made again as it was, after a pause if need be. Where a try may have been done
// the next one is a further attempt of the same request: it counts up, names the
// sites that may have done the earlier ones, and has their last time of execution
// (not_after), so that the sites undo what was done twice. Only the answer of the
// latest attempt is returned.
//
// Nothing goes on beyond the context of a call, or beyond Config.Timeout where the
// context has no deadline. What ends without an answer is
//
//   - a context error, with errors.Is: if nothing was done;
//   - [ErrOutcomeUnknown], with or without a context error: if it may have been. The
//     [Error] has the request id and the next attempt. [Resume] hands them to a
//     later call with the same entity and tokens, which finds out.
//
// Refusals, such as [ErrOutOfTokens], are answers, and returned at once.
package client
