// Package avantan agrees, among the sites of a cluster, on who puts how many
// tokens into a redistribution, and refuses to do anything else: it neither
// shares tokens out, nor keeps books, nor reads a clock, nor sends, nor stores.
//
// It is the protocol Avantan[(n+1)/2] of Samya (Maiyya et al., section 4.3.1,
// Algorithm 1, Figure 5): per sequence (an entity, or the cluster's catalogue)
// a series of instances, each a single-decree Paxos whose value is built from
// what a majority of sites answer in the first phase. A [Machine] is one site's
// part in one sequence. It is deterministic: the same State and the same inputs
// give the same outputs.
//
// # What the caller must do
//
//  1. Call [Machine.Step] from one goroutine at a time, with every message that
//     arrives for the sequence, with a wake when [Machine.WakeAt] is due, and
//     with the instances it wants begun. Messages may be lost, repeated, delayed
//     and reordered without bound.
//  2. If [Output].Persist is set, store [Machine.State] and all that the
//     [Ledger] has changed, also since earlier outputs, in one transaction.
//  3. Send Output.Messages only when the state after that Output, and after all
//     before it, is durable. An Output without Persist still waits for earlier
//     ones, since its messages may tell of their state. Many outputs may share
//     one transaction.
//  4. Answer a client on the strength of Output.Applied, or of tokens the Ledger
//     was credited, only when that is durable.
//  5. If a transaction fails, stop; never send on top of it. After a crash, hand
//     what was last durable to [New]. An open instance recovers by itself.
//  6. Begin again after Applied if there is still something wanted: a Begin
//     joins an instance under way, whatever its value then is, and another
//     leader's value does not hold this site's change. [Machine.Open] says
//     whether one is under way.
//  7. Never run a site's State twice, nor one older than was last durable.
//  8. Refresh from a peer when it comes back into touch, for a sequence whose
//     decisions have to be known here soon (the catalogue). A site that nothing
//     is at stake for notices a missed decision only with the next instance.
//
// What is durable before each message leaves, given duties 2 and 3:
//
//	Election      the promise of the leader's own new ballot
//	ElectionOk    the promise, the offer set aside and its exposure
//	Refuse        the higher promise
//	Accept        the value, the leader's accept and offer, the flag Built
//	AcceptOk      the value, its ballot, and the promise of that ballot
//	Decision      the applied value and the books after it
//	Applied       all instances up to the one named, and the books after them
//	Abandon       nothing new: Built is not set, and a restart keeps it so for
//	              the ballots named
//	Status        the exposure asked about
//	CatchUpAsk    all instances up to the one named
//	CatchUp       the applied instances and the retention table
//
// # What differs from the paper
//
//   - Messages carry an instance number: the paper resets its variables after a
//     decision, so a delayed message could be taken for one of the next.
//   - Accepting a value promises its ballot. Without that a repeated
//     Accept-Value of a lower ballot overwrites a decided value.
//   - A new leader takes the value accepted at the highest ballot, as the
//     paper's text says and its Algorithm 1 does not.
//   - Sites offer a slice and go on serving. An offer stays set aside while it is
//     exposed: some leader was sent it and may have built a value with it. It is
//     never inferred from what was accepted that a leader has built none; the
//     leader says so (Abandon), and if it is gone, the instance is finished.
//   - An exposure to a ballot ends with an Accept-Value of that ballot without
//     this site only if that is the one ballot of that leader it is exposed to:
//     a value that the leader built at an earlier one, with the offer in it, may
//     have been accepted somewhere and be proposed again. Hence two ballots a
//     leader are recorded, the first and the last.
//   - A site that missed decisions catches up with at most one decision of its
//     own per peer kept (see [Kept]), in one transaction.
//   - A decided value is sent along with the decision, so that a site that did
//     not accept it can apply it.
package avantan
