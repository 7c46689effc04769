// Package avantan agrees, among the sites of a cluster, on the tokens that each site
// puts into a redistribution. It does nothing else: it shares out no tokens, keeps no
// books, reads no clock, sends nothing and stores nothing.
//
// It is the protocol Avantan[(n+1)/2] of Samya (Maiyya et al., section 4.3.1, Algorithm
// 1, Figure 5). Each sequence (an entity, or the cluster's catalogue) is a series of
// instances. Each instance is a single-decree Paxos that builds its value from the
// answers of a majority of sites in the first phase. A [Machine] is the part of a
// single site in a single sequence. It is deterministic: the same State and the same
// inputs give the same outputs.
//
// # Duties of the caller
//
//  1. Call [Machine.Step] from one goroutine at a time: with every message that
//     arrives for the sequence, with a wake when [Machine.WakeAt] is due, and to
//     begin instances. Messages may be lost, repeated, delayed and reordered
//     without bound.
//  2. If [Output].Persist is set, store [Machine.State] and all changes of the
//     [Ledger], also since earlier outputs, in one transaction.
//  3. Send Output.Messages only when the state after that Output, and after all
//     earlier outputs, is durable. An Output without Persist still waits for
//     earlier outputs, since its messages may tell of their state. Many outputs
//     may share a transaction.
//  4. Answer a client on the strength of Output.Applied, or of tokens credited to
//     the Ledger, only when that is durable.
//  5. If a transaction fails, stop; never send on top of it. After a crash, hand
//     the last durable State to [New]. An open instance recovers by itself.
//  6. Begin again after Applied if the site still wants something: a Begin joins
//     an instance under way, whatever its value then is, and another leader's
//     value does not hold this site's change. [Machine.Open] reports whether an
//     instance is under way.
//  7. Never run a site's State twice, and never run a State older than the last
//     durable State.
//  8. Refresh from a peer when it comes back into touch, for a sequence whose
//     decisions this site needs soon (the catalogue). A site with nothing at stake
//     notices a missed decision only with the next instance.
//
// Durable before each message leaves, given duties 2 and 3:
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
// # Differences from the paper
//
//   - Messages carry an instance number. The paper resets its variables after a
//     decision, so a delayed message could pass for a message of the next instance.
//   - Accepting a value promises its ballot. Otherwise a repeated Accept-Value of a
//     lower ballot overwrites a decided value.
//   - A new leader takes the value accepted at the highest ballot. The paper's text
//     says so and its Algorithm 1 does not.
//   - Sites offer a slice and go on serving. An offer stays set aside while it is
//     exposed: some leader was sent the offer and may have built a value with it. No
//     site infers from accepted values that a leader has built none. The leader says
//     so (Abandon); if it is gone, another site finishes the instance.
//   - An Accept-Value without this site ends the exposure to its ballot only if this
//     site's offer is exposed to no other ballot of that leader. At an earlier ballot
//     the leader may have built a value with the offer in it; that value may have been
//     accepted somewhere and be proposed again. Hence a State records two ballots a
//     leader, the first and the last.
//   - A site that missed decisions catches up in one transaction. It needs at most one
//     decision that involves the site itself, and every peer ahead of it keeps that
//     decision (see [Kept]).
//   - A decision carries the decided value, so that a site that did not accept the
//     value can apply it.
package avantan
