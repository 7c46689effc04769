// Package explore runs the real state machines of three sites through every schedule
// within small bounds and checks every state that can come about. It refuses to sample: a
// search either closes or says that it did not. It tests the deciding code,
// [avantan.Machine.Step], [star.Machine.Step], [handoff.Machine.Step] and
// [transfer.Machine.Step]; clocks, disks and networks are choices
// that the search makes.
//
// # States
//
// A site is its Machine with all volatile fields, its books, the durable part of both,
// and the past that the invariants need: the accepts that were ever durable there. All
// this is the site's core. A full site is a core with the set of messages it has sent. A
// state is three full sites and the used budgets for crashes and clients' requests. All
// parts are interned by their whole encodings, so that no two states are ever taken for a
// single state. Nothing rests on a hash being good.
//
// # Events
//
//   - Any message that was ever sent is delivered, again and again, in any order. The
//     network is a set that only grows. So loss, duplicates, reordering and every
//     partition, even in a single direction, are covered by construction. A message not
//     delivered, for a time or for ever, is among the schedules.
//   - Any running timer fires. Ticks are no part of the state: a Step is always at time
//     1, running timers stand far off, and the firing timer is set to 0.
//   - A site begins an instance, within its ballots, asks a peer for missed instances,
//     grants or takes back a client's token, or crashes.
//   - A site is written off, at any time: another decides it, and tells the third. The lost
//     site learns nothing, and goes on alone.
//   - A site leaves (majority): once its sequence has adopted the view of the others, it
//     hands over to its heir, sends its bequest again, or says that it is empty.
//
// A step and its transaction are a unit: output with Persist is made durable at once, and
// its messages leave. State that is not persisted stays volatile. A crash between a Step
// and its sync loses the state that was not durable, and none of its messages has left.
// This is the crash before the Step, which is searched. A crash after the sync and
// before, or between, the messages is the crash after the step with messages that are
// never delivered. The same goes for several outputs in a transaction, since the messages
// of all outputs wait for it. So a crash at every effect boundary is searched, a site
// that stays down included: nothing need reach it.
//
// # Reductions
//
// These hold for any variant:
//
//   - Each step of a core with an input is run once and remembered; the search itself
//     only looks up.
//   - A step that leaves the core as it is and only sends is taken at once. More
//     messages never prevent anything, and need not be delivered, so a state with them
//     can do all that the state without them can.
//   - For the same reason a state stands for every state with the same cores, no more
//     sent messages and no more crashes left. The states that it stands for are not
//     searched again. Invariants look at cores alone.
//   - After a step of a site, the search looks only at the messages that the site may
//     hear and at its new messages. If a box has grown by a packet, it looks only at the
//     packet.
//   - Invariants are checked once for each combination of cores.
//   - States are searched by rank, roughly by progress. So the largest of several states
//     that stand for each other tends to come first.
//
// These rest on the protocol, and are switched off by [Bounds].Plain:
//
//   - [avantan.Machine.Simplify] drops volatile fields that make no difference
//     when any timer may fire at any time, or cannot matter within the bounds.
//   - An acknowledgement is delivered as soon as it is there (Node.Urgent).
//
// The majority variant has a further reduction: a client's request comes while no offer
// is out. The request changes left and net by opposite amounts, so it shows in a later
// offer only. The any-subset variant has the following reductions, each argued in
// star_reduce.go:
//
//   - A value accepted and undecided waits for its whole patience at once.
//   - Some messages are delivered at once (Node.Urgent): about others' accepts, if they
//     only add knowledge; about the end of an offer; and about applies, to a site that
//     has applied the value. A commit is not: it may come late, or never.
//   - Sites offer a single token to each instance and have enough for all, so that
//     instances are tied together by the protocol alone. Then clients' requests can come
//     last (Variant.RequestsLast).
//   - An instance that goes on nowhere is forgotten (Node.Past): its record in the books
//     and votes, once a last check has seen it, and its messages that make no difference
//     where they would arrive. Each of these messages is delivered once more before, to
//     see that.
//
// Where a site may be lost, the any-subset variant is searched without these. Direct
// transfers have a single reduction: a round is over at once. While a site leaves, requests
// come at any time.
//
// The tests compare the durable state in all states of a search with and without the
// reductions. Under the any-subset variant they compare the possible outcomes of each
// instance. They also compare the plain search with a search that has no reductions at
// all. The price is paid in bugs. A bug may only show where a reduction rests on a rule
// that the bug breaks. Then other invariants may find it, later, or a plain search alone.
//
// # Limits
//
// The decisions about sites that leave or are lost are those of site/core, in short copies
// (drain.go, loss.go): who hears whom, when a bequest begins, when a leaver is empty, and
// what a member gets that cannot know the outcome. The catalogue, the audit that finds what a
// lost site held, requests and claims are not searched.
//
// The search leaves out more than the bounds say: a site that may not lead, or has used
// its ballots, does not time out into another ballot. It leaves out two entities, since
// their machines share nothing, and damage to disks. Liveness is only sampled: every so
// many states a copy is healed, with all messages on their way lost. The copy must come
// to rest with no offer set aside.
//
// # Another variant
//
// A [Variant] makes a [Node] of each site and checks the invariants across them;
// see [Majority], [Star] and [Transfer]. The search knows nothing else of a protocol.
package explore
