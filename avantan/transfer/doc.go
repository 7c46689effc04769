// Package transfer moves tokens of an entity, point to point, from sites that have them
// to a site that needs them. The site asks several donors at once, and each gives from
// its own books. The package does nothing else: it agrees on nothing, changes no limit,
// sets nothing aside for an ask, keeps no books, reads no clock, sends nothing and
// stores nothing.
//
// A donor takes the tokens out of its books before it sends them, and durably notes the
// receiver under the next number of this pair of sites. It sends them again until they
// are acknowledged, and never takes them back: it cannot know that they have not
// arrived. The receiver puts the tokens into its books and durably notes the number
// before it acknowledges, so that they count once. A donor has one transfer under way
// to each receiver, and a receiver remembers a single number for each donor. Neither
// waits for the other to serve its clients.
//
// A [Machine] is the part of a single site, as a receiver and as a donor. It is
// deterministic: the same State and the same inputs give the same outputs.
//
// # Duties of the caller
//
//  1. Call [Machine.Step] from one goroutine at a time: with every message that
//     arrives for the entity in its generation, with a wake when [Machine.WakeAt]
//     is due, and to begin rounds. Messages may be lost, repeated, delayed and
//     reordered without bound.
//  2. If [Output].Persist is set, store [Machine.State] and all changes of the
//     [Ledger], also since earlier outputs, in one transaction. Never store the
//     books without the State that an earlier Persist asked for.
//  3. Send Output.Messages only when the state after that Output, and after all
//     earlier outputs, is durable. An Output without Persist still waits for
//     earlier outputs, since its messages may tell of their state. Many outputs
//     may share a transaction.
//  4. Answer a client on the strength of tokens credited to the Ledger only when
//     that is durable.
//  5. If a transaction fails, stop; never send on top of it. After a crash, hand
//     the last durable State to [New], and give the Machine a wake: transfers under
//     way are sent again.
//  6. Begin another round, or not, after a round has ended short: this package does
//     not decide how often that is worthwhile. Tokens of an earlier round may come
//     late; a round begun after that may get more than it needs.
//  7. Never run a site's State twice, and never run a State older than the last
//     durable State.
//  8. Keep the members as they are, and a State as long as its generation lives.
//     The sums of all books and transfers must fit 64 bits.
//
// Durable before each message leaves, given duties 2 and 3:
//
//	Ask       its number, within a block that is reserved; the credits of what
//	          it acknowledges
//	Transfer  the books without the tokens, with receiver, number and amount
//	Refuse    nothing new
//	Ack       the books with the tokens, and the number
//
// A Machine keeps acknowledged transfers and refused asks without a transaction of
// their own. A crash may undo them. Then a transfer is sent once more than necessary,
// or a donor answers a repeated ask after all.
//
// Conservation, after every event, over the tokens that the sites hold, and over the
// tokens that they would hold if all crashed now:
//
//	Σ books + Σ Debit.Amount with a Debit.Seq above its receiver's Credit.Seq = const
//
// # Sites that are written off
//
// A site that Config.Lost names is heard no more. It may be alive, cut off, and grant the
// tokens that it holds. So tokens under way to it stay out of the books: it may have
// credited them. Tokens under way from it are refused from then on: they count to what it
// held, which is retired as a whole. A wake after the loss drops the debits to the site
// and lets a round wait for the other donors only. A debit dropped before it was
// credited leaves the sum: conservation holds as "at most".
//
// # Effects of a late message
//
// The number of an ask is never used again by its site. A donor gives only for a
// number above all numbers it has seen of the site. So a repeated ask gets tokens
// once, and an ask that a later ask has overtaken is dropped. An ask that comes late
// but in order gets tokens: the donor cannot know that the round is over. The
// receiver credits tokens whenever they come, whether a round waits for them or not.
package transfer
