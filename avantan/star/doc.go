// Package star agrees, among any two or more sites of a cluster, on who puts
// how many tokens into a redistribution, and refuses to do anything else: it
// changes no limit, needs and asks for no majority, keeps no books, reads no
// clock, sends nothing and stores nothing.
//
// It is the protocol Avantan[*] of Samya (Maiyya et al., section 4.3.2,
// Figure 6). A leader collects offers until they are enough, and fixes with them
// the set R of those that take part. Each of R votes once, and for ever: the
// value is committed if all have accepted it, aborted if one has not. These
// exclude each other, and that is the whole safety argument. A [Machine] is one
// site's part in all instances of one sequence, of which several may be open at
// once. It is deterministic: the same State and the same inputs give the same
// outputs.
//
// # What the caller must do
//
//  1. Call [Machine.Step] from one goroutine at a time, with every message that
//     arrives for the sequence, with a wake when [Machine.WakeAt] is due, and
//     with the instances it wants begun. Messages may be lost, repeated, delayed
//     and reordered without bound.
//  2. If [Output].Persist is set, store [Machine.State] and all that the
//     [Ledger] has changed, also since earlier outputs, in one transaction. Never
//     store the books of a sequence without what a Persist before has asked for.
//  3. Send Output.Messages only when the state after that Output, and after all
//     before it, is durable. An Output without Persist still waits for earlier
//     ones, since its messages may tell of their state. Many outputs may share
//     one transaction.
//  4. Answer a client on the strength of Output.Applied, or of tokens the Ledger
//     was credited, only when that is durable.
//  5. If a transaction fails, stop; never send on top of it. After a crash, hand
//     what was last durable to [New], and give the Machine a wake: what is open
//     recovers by itself.
//  6. Begin again after Applied or Failed if there is still something wanted. A
//     Begin waits while an instance is under way here, whoever leads it, and for
//     the end of a back-off ([Machine.Open], [Machine.Waits]).
//  7. Never run a site's State twice, nor one older than was last durable.
//  8. Count in the books what is set aside for instances that are open: a site
//     pledges to the next as soon as it has voted, before it is granted anything.
//
// What is durable before each message leaves, given duties 2 and 3:
//
//	Election      the counter, within a block that is reserved
//	ElectionOk    the offer set aside, and the floor that keeps it the only one
//	Busy          nothing new
//	Discard       nothing new: the leader's counters go up only, also in a restart
//	Accept        the value and this site's accept; the leader's own offer with it
//	AcceptOk      the value and this site's accept
//	Abort         the vote, or what was learned of another's, and the books with
//	              the offer taken back
//	Commit        nothing new: all of R have said that their accept is durable.
//	              This site's own books are, after it
//	Applied       the books after the value
//	Settled       the books of all of R after the value
//
// What is forgotten, so that the State stays small: a slice whose instance is
// aborted, at once, since the floor of its leader answers for it; one that is
// committed, when its leader knows that all of R have durably applied it. A
// floor covers all instances of a leader up to one because the leader runs one
// at a time: its next Election ends what this site has not voted on.
//
// # What differs from the paper
//
//   - Instances have names of their own, (leader, counter), never used twice.
//     The paper's ballots are shared by instances that run at the same time.
//   - A site that has not voted says nothing of use. The paper takes "no value
//     yet" for an abort; but the value may still arrive there, be accepted, and
//     be committed by the others. So a site that is asked votes first.
//   - A member of R that asks sends the value along, as the leader does, so that
//     who has not voted can accept: the instance is then saved, not only ended.
//     The paper's question leaves it aborted.
//   - A leader may not give up once its value has left. Its own accept is in the
//     value: the others count on it, also where they cannot reach it.
//   - The votes of a site and the books that go with them are one transaction,
//     and Discard counts only where none was cast.
//   - With two in R the cohort commits by its own accept.
//   - A site that has voted takes part in further instances, up to a bound. In
//     the paper it waits for the end, so that one site out of reach stops all
//     that it had anything open with.
//   - A site that is busy keeps one election and answers it later. Leaders that
//     meet while they collect yield by a fixed order, so that they do not wait
//     for each other's pledges.
//   - Sites offer a slice and go on serving; one that has nothing to offer may
//     decline, and is then not in R.
package star
