// Package explore runs the real state machines of three sites through every
// schedule within small bounds, checks every state that can come about, and
// refuses to sample: a search either closes or says that it did not. It tests
// what decides, [avantan.Machine.Step] and [star.Machine.Step]; clocks, disks and
// networks are choices that the search makes.
//
// # What a state is
//
// A site is its Machine with all volatile fields, its books, what of both is
// durable, and what the invariants must know of its past: the accepts that were
// ever durable there. That is its core. A full site is a core with the set of
// messages it has sent. A state is three full sites and what is used of the
// budgets for crashes and clients' requests. All parts are interned by their
// whole encodings, so that no two states are ever taken for one; nothing rests
// on a hash being good.
//
// # What can happen
//
//   - Any message that was ever sent is delivered, again and again, in any order.
//     The network is a set that only grows. So loss, duplicates, reordering and
//     every partition, one-way ones too, are covered by construction: a message
//     not delivered, for a time or for ever, is one of the schedules.
//   - Any running timer fires. Ticks are no part of the state: a Step is always
//     at time 1, running timers stand far off, and the one that fires is set to 0.
//   - A site begins an instance, within its ballots, asks a peer for what it
//     missed, grants or takes back a client's token, or crashes.
//
// A step and its transaction are one: what a Machine puts out with Persist is
// made durable at once, and its messages leave. What is not persisted stays
// volatile. A crash between a Step and its sync loses what was not durable, and
// none of its messages has left: that is the crash before the Step, which is
// searched. A crash after the sync and before, or between, the messages is the
// crash after the step with messages that are never delivered. The same goes for
// several outputs in one transaction, since the messages of all wait for it. So a
// crash at every effect boundary is searched, a site that stays down included:
// nothing need reach it.
//
// # Reductions
//
// These hold for any variant:
//
//   - Each step of a core with an input is run once and remembered; the search
//     itself only looks up.
//   - A step that leaves the core as it is and only sends is taken at once. More
//     messages never prevent anything, and need not be delivered, so a state with
//     them can do all that the state without them can.
//   - For the same reason a state stands for every state with the same cores
//     whose sites have sent no more and which has no more crashes left. Such a
//     state is not searched again. Invariants look at cores alone.
//   - After a step of one site only what it may hear, and what others newly hear
//     of it, is looked at. Of a box that has grown by a packet only the packet is.
//   - Invariants are checked once for each combination of cores.
//   - States are searched by rank, roughly by progress, so that of states that
//     stand for each other the largest tends to come first.
//
// These rest on the protocol, and are switched off by [Bounds].Plain:
//
//   - [avantan.Machine.Simplify] drops volatile fields that make no difference
//     when any timer may fire at any time, or cannot matter within the bounds.
//   - An acknowledgement is delivered as soon as it is there (Node.Urgent).
//
// The majority variant has one more: a client's request comes while no offer is
// out. It changes left and net by opposite amounts, so it shows in a later offer
// only. The any-subset variant has these; each is argued where it is written
// (star_reduce.go):
//
//   - A value accepted and undecided waits for its whole patience at once.
//   - What only adds to what is known of others' accepts, what ends an offer, and
//     what tells of applies where the value is applied, is delivered at once
//     (Node.Urgent). What commits is not: it may come late, or never.
//   - Sites offer one token to each instance and have enough for all, so that
//     instances are tied together by the protocol alone. Then clients' requests
//     can come last (Variant.RequestsLast).
//   - An instance that goes on nowhere is forgotten (Node.Past): its record in
//     the books and votes, once a last check has seen it, and those of its
//     messages which make no difference where they would arrive. Each of them is
//     delivered once more before, to see that.
//
// The tests compare what is durable in all states of a search with and without
// them, or, under the any-subset variant, what can come of each instance; and
// the plain search with one that has no reductions at all. The price is paid in
// bugs: one that only shows where a reduction rests on a rule that the bug breaks
// may be found by other invariants, later, or by a plain search alone.
//
// # What is not searched
//
// More than the bounds say: a site that may not lead, or has used its ballots,
// does not time out into another. Two entities, since their machines share
// nothing. Damage to disks. Liveness is only sampled: every so many states a copy
// is healed, all that was on its way being lost, and must come to rest with no
// offer set aside.
//
// # Another variant
//
// A [Variant] makes a [Node] of each site and checks the invariants across them;
// see [Majority] and [Star]. The search knows nothing else of a protocol.
package explore
