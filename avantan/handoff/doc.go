// Package handoff moves all that a site holds of an entity to another site, its heir,
// before the site leaves its cluster for good: tokens left, tokens out through the site,
// and leases. The package does nothing else: it agrees on nothing, chooses no heir,
// decides on no departure, keeps no books, knows no lease, reads no clock, sends nothing
// and stores nothing.
//
// The leaver hands its estate over in bequests, one after the other, until nothing is
// left to hand over. A bequest is durable before it leaves, is sent again until
// acknowledged, and is never changed. The heir takes a bequest into its books and
// durably notes the number, then acknowledges, so that a bequest counts once. The
// numbers of a pair of sites are 1, 2, 3, … and never begin anew.
//
// No token can be granted twice, whatever is lost, late or repeated. Tokens out move as a
// number: no site grants anything on the strength of its net.
//
//	tokens left         leave the leaver's books before the bequest is sent
//	a debt              is debited by the heir, then credited to the leaver
//	tokens out          are counted by the heir, then counted by the leaver no more
//	a lease             is counted by the heir with its tokens, then dropped by the leaver
//	net below zero      the leaver counts zero, then the heir takes the number over
//
// So both sites count tokens out while a bequest is open. The tokens of leases are part of
// net. A bequest takes nothing from the heir but a debt: no heir can fall short by the
// tokens out, owe them, and be lost with them.
//
// A [Machine] is the part of a single site, as a leaver and as an heir. A Machine is
// deterministic: the same State and the same inputs give the same outputs.
//
// # Duties of the caller
//
//  1. Call [Machine.Step] from one goroutine at a time: with every message that
//     arrives for the entity in its generation, with a wake when [Machine.WakeAt]
//     is due, to begin bequests, and for each site that is out for good. Messages may
//     be lost, repeated, delayed and reordered without bound.
//  2. If [Output].Persist is set, store [Machine.State] and all changes of the
//     [Ledger], also since earlier outputs, in one transaction. Never store the
//     books without the State that an earlier Persist asked for.
//  3. Send Output.Messages only when the state after that Output, and after all
//     earlier outputs, is durable. An Output without Persist still waits for
//     earlier outputs, since the messages may tell of that state.
//  4. Answer a client on the strength of tokens that a step brought to the Ledger only
//     when that is durable.
//  5. If a transaction fails, stop; never send on top of it. After a crash, hand
//     the last durable State to [New], and give the Machine a wake: an open bequest
//     is sent again.
//  6. Let the leaver grant nothing to clients, and begin the next bequest when the last
//     is closed, until an Output is Empty. Releases at the leaver may go on, also
//     during a bequest: a Machine expects left and net to change.
//  7. Freeze the items of an open bequest: the leaver does not renew, end, expire or
//     change an item until the bequest is closed. The heir may do all that once the
//     items are taken.
//  8. Hand in no message of a site that is out for good, also none that comes late:
//     the Machine no longer knows the site's numbers. Give no later site such a name.
//     Let no site go, unless written off, while a bequest to that site is open.
//  9. Never run a site's State twice, and never run a State older than the last
//     durable State. Keep a State as long as its generation lives, and drop the
//     bequests to and from a generation that is deleted.
//
// Durable before each message leaves, given duties 2 and 3:
//
//	Bequeath  the books without the tokens left, with zero for a net below zero, and
//	          the whole bequest with its number
//	both      the books with all of the bequest that was taken last, its items and its
//	          number
//
// # Laws
//
// A bequest is taken once the heir's [Taken].Number has reached the bequest's. Open are
// the bequests that the leaver has not closed. After every event, over the books of all
// sites, and over the books after a crash of all sites now:
//
//	Σ left + Σ Left of open bequests not taken + Σ Owed of open bequests taken = M − tokens out
//
//	Σ net = tokens out + Σ −Net of open bequests not taken, if Net is below zero
//	                   + Σ (Net above zero + tokens of all items) of open bequests taken
//
// No term that is added is below zero. So:
//
//	Σ left ≤ M − tokens out
//
// # Entities that move
//
// When an entity moves in a tree, each site moves its net from the entities above it to
// the new ones, with tokens left. Tokens that two sites count would move twice. So an
// entity must not leave an entity above it, nor be deleted below one, while a bequest may
// be open: the caller sees to that.
//
// # An heir that is lost
//
// If the heir is written off, an open bequest is dropped, and nothing is taken back: no
// site can tell whether the heir has taken the bequest. Tokens left stay out of the
// leaver's books; a net below zero stays zero. A debt and tokens out stay with the leaver.
// Leases of the bequest are forgotten, and their tokens stay in the net: a lease that has
// ended at the heir must not end once more. The first law then counts the bequest as open
// for ever. Of the second law remains that Σ net is at least the tokens out. So the third
// law holds as before. Where tokens out come back by themselves, the ledger takes them out
// of the net, as the lost heir may have them again.
package handoff
