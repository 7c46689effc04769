// Package client acquires and releases tokens of samya for programs in Go. It never
// guesses: an operation that may or may not have been done is repeated in a way that can
// do it only once. If even the repeats bring no answer, the error says so and how to go
// on.
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
// A Client is for the whole program. Its callers share a single stream to each target,
// and requests made at the same time travel in the same messages. Targets are app
// managers or sites, which serve the same calls.
//
// # Under failure
//
// A call goes to the nearest target that answers: targets of the own region first, then
// by measured round trip. When a target is down or falls silent the next is asked; when
// it is back, it is preferred again.
//
// Each call keeps a single request id over all its tries. A try is provably not begun if
// it was not sent, or if the target is overloaded or about to stop. Such a try is made
// again as it was, after a pause if need be. After a try that may have been done, the
// next try is a further attempt of the same request. It counts up, names the sites that
// may have done earlier attempts, and has the same last time of execution (not_after).
// With these the sites undo whatever was done twice. Only the answer of the latest
// attempt is returned.
//
// Nothing goes on beyond the context of a call, or beyond Config.Timeout if the context
// has no deadline. A call that ends without an answer returns
//
//   - a context error, with errors.Is: if nothing was done;
//   - [ErrOutcomeUnknown], with or without a context error: if it may have been. The
//     [Error] has the request id and the next attempt. [Resume] hands them to a
//     later call with the same entity and tokens, which finds out.
//
// Refusals, such as [ErrOutOfTokens], are answers, and returned at once.
//
// # When members change
//
// Targets that are sites tell the members of the cluster. New sites become targets, sites
// that drain get no acquires, and sites that have left or were written off get nothing.
// Callers see no error of that. See Config.FixedTargets.
package client
