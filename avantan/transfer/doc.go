// Package transfer moves tokens of one entity from sites that have them to one
// that needs them, point to point: the site asks several donors at once, and
// each gives what it can from its own books. It refuses to do anything else: it
// agrees on nothing, changes no limit, sets nothing aside on asking, keeps no
// books, reads no clock, sends nothing and stores nothing.
//
// A donor takes the tokens out of its books and durably notes for whom, under
// the next number of this pair of sites, before it sends them. It sends them
// again until they are acknowledged, and never takes them back: it cannot know
// that they have not arrived. The receiver puts them into its books and durably
// notes the number before it acknowledges, so that they count once. A donor has
// one transfer under way to each receiver, and a receiver remembers one number
// for each donor. Neither waits for the other to serve its clients.
//
// A [Machine] is one site's part in this, as a receiver and as a donor. It is
// deterministic: the same State and the same inputs give the same outputs.
//
// # What the caller must do
//
//  1. Call [Machine.Step] from one goroutine at a time, with every message that
//     arrives for the entity in its generation, with a wake when [Machine.WakeAt]
//     is due, and with the rounds it wants begun. Messages may be lost, repeated,
//     delayed and reordered without bound.
//  2. If [Output].Persist is set, store [Machine.State] and all that the
//     [Ledger] has changed, also since earlier outputs, in one transaction. Never
//     store the books without what a Persist before has asked for.
//  3. Send Output.Messages only when the state after that Output, and after all
//     before it, is durable. An Output without Persist still waits for earlier
//     ones, since its messages may tell of their state. Many outputs may share
//     one transaction.
//  4. Answer a client on the strength of tokens the Ledger was credited only when
//     that is durable.
//  5. If a transaction fails, stop; never send on top of it. After a crash, hand
//     what was last durable to [New], and give the Machine a wake: what is under
//     way is sent again.
//  6. Begin another round, or not, after one has ended short: how often it is
//     worth while is not decided here. One that begins after the tokens of an
//     earlier one have come late may get more than it needs.
//  7. Never run a site's State twice, nor one older than was last durable.
//  8. Keep the members as they are, and a State as long as its generation lives.
//     The sums of all books and transfers must fit 64 bits.
//
// What is durable before each message leaves, given duties 2 and 3:
//
//	Ask       its number, within a block that is reserved; the credits of what
//	          it acknowledges
//	Transfer  the books without the tokens, with receiver, number and amount
//	Refuse    nothing new
//	Ack       the books with the tokens, and the number
//
// That a transfer is acknowledged, and that an ask was refused, is kept without
// a transaction of its own. A crash may undo it. Then a transfer is sent once more
// than need be, or an ask that comes again is answered after all.
//
// Conservation, after every event, over what the sites hold, and over what they
// would hold if all crashed now:
//
//	Σ books + Σ Debit.Amount with a Debit.Seq above its receiver's Credit.Seq = const
//
// # What a late message can do
//
// An ask has a number that its site never uses again, and a donor gives for a
// number above all that it has seen of the site only. So an ask that comes twice
// is given to once, and one that a later ask has overtaken is dropped. An ask
// that comes late but in order is given to: the donor cannot know that the round
// is over. The tokens are credited whenever they come, whether a round waits for
// them or not.
package transfer
