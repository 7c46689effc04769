// Package star agrees, among any two or more sites of a cluster, on the tokens that
// each site puts into a redistribution. It does nothing else: it changes no limit,
// needs and asks for no majority, keeps no books, reads no clock, sends nothing and
// stores nothing.
//
// It is the protocol Avantan[*] of Samya (Maiyya et al., section 4.3.2, Figure 6). A
// leader collects offers until they are enough, and fixes with them the set R of sites
// that take part. Each site of R votes once, and for ever. The value is committed if
// all have accepted it, aborted if any has not. These exclude each other, and that is
// the whole safety argument. A [Machine] is the part of a single site in all instances
// of a sequence; several instances may be open at once. It is deterministic: the same
// State and the same inputs give the same outputs.
//
// # Duties of the caller
//
//  1. Call [Machine.Step] from one goroutine at a time: with every message that
//     arrives for the sequence, with a wake when [Machine.WakeAt] is due, and to
//     begin instances. Messages may be lost, repeated, delayed and reordered
//     without bound.
//  2. If [Output].Persist is set, store [Machine.State] and all changes of the
//     [Ledger], also since earlier outputs, in one transaction. Never store the
//     books of a sequence without the State that an earlier Persist asked for.
//  3. Send Output.Messages only when the state after that Output, and after all
//     earlier outputs, is durable. An Output without Persist still waits for
//     earlier outputs, since its messages may tell of their state. Many outputs
//     may share a transaction.
//  4. Answer a client on the strength of Output.Applied, or of tokens credited to
//     the Ledger, only when that is durable.
//  5. If a transaction fails, stop; never send on top of it. After a crash, hand
//     the last durable State to [New], and give the Machine a wake: open instances
//     recover by themselves.
//  6. Begin again after Applied or Failed if the site still wants something. A
//     Begin waits while an instance is under way here, whoever leads it, and for
//     the end of a back-off ([Machine.Open], [Machine.Waits]).
//  7. Never run a site's State twice, and never run a State older than the last
//     durable State.
//  8. Give a wake after [Config].Lost has named a further site. A site that learns that it
//     is written off itself stops for good.
//  9. Count in the books the slices set aside for open instances: a site pledges
//     to the next instance as soon as it has voted, before it is granted anything.
//
// Durable before each message leaves, given duties 2 and 3:
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
//	Undecided     the accept, and the losses that it names
//	Concluded     the books after the end, as Applied
//	Ended         that the instance has ended here: the books after it, or no slice
//
// Two kinds of slices are forgotten, so that the State stays small. A site forgets the
// slice of an aborted instance at once, since the floor of its leader answers for it. A
// site forgets the slice of a committed instance when the leader knows that all of R
// have durably applied it. A floor covers all lower instances of a leader, because the
// leader runs one at a time: its next Election ends an instance that this site has not
// voted on.
//
// # Sites that are written off
//
// [Config].Lost names sites that are lost for good, as this site durably knows. Such a site
// may be alive and cut off. It may have voted either way, and may commit or abort later,
// by what others tell it that do not know of the loss. A site that knows of it drops all its
// messages, for ever. It aborts an unvoted instance that the lost site leads, and votes
// against a value that names the lost site.
//
// What was heard of a lost site before is as good as ever, and each member knows that the
// leader has accepted. So an accepted instance needs only the votes of the members that are
// left, unless a cohort is lost and its vote is unknown here: the member is in doubt. A
// member in doubt never learns that vote, and never commits by counting. If it is asked, it
// answers Undecided instead of AcceptOk, and names all losses in R that it knows. A member
// in doubt concludes once every member that is left by its own list has said Undecided and
// named at least that list. Or another member tells it that it has concluded. To conclude is
// to end with the lower of its offer and its grant. A member that is left alone concludes at
// once.
//
// It is safe. Commit and abort still exclude each other: both rest on votes alone, and a
// vote is cast once. Let the instance be committed at some site, the lost one included.
// Then each member has its grant, or concluded with no more. Let it be aborted. Then each
// member has its offer, or concluded with no more. So nothing is over-granted, whatever a
// lost site does. Only tokens may be missing in the books.
//
// And all members that are left end alike. Let f conclude. Every member left by the list of
// f has said Undecided with no outcome, and drops the messages of that list from then on.
// The first of them to find an outcome later would have to count a vote that it never
// hears, or be told by another of them that has found it before. So a second loss needs a
// second answer, which names both.
//
// A site without a slice answers Abort. So it must not forget while anybody may ask. A site
// forgets once all members of R that are left, by what it knows, have ended: it does not
// hear the others. But a member that does not know of the loss still hears the lost site.
// So a leader says Settled only if all of R have applied, the lost ones included. Where a
// site is lost, all members tell each other Commit or Concluded until they have heard
// Ended of each other.
//
// # Differences from the paper
//
//   - Instances have names of their own, (leader, counter), never used twice. In the
//     paper, instances that run at the same time share ballots.
//   - A site that has not voted says nothing of use. The paper takes "no value yet" for
//     an abort; but the value may still arrive there, be accepted, and be committed by
//     the others. So a site that is asked votes first.
//   - A member of R that asks sends the value along, as the leader does, so that a site
//     that has not voted can accept it. The instance is then saved, not only ended. The
//     paper's question leaves it aborted.
//   - A leader may not give up once its value has left. The value holds the leader's
//     own accept: the others count on it, also where they cannot reach the leader.
//   - The votes of a site and the books that go with them are one transaction. Discard
//     counts only where no vote was cast.
//   - With two sites in R the cohort commits by its own accept.
//   - A site that has voted takes part in further instances, up to a bound. In the
//     paper it waits for the end, so that an unreachable site stops all sites that have
//     an instance open with it.
//   - A busy site keeps one election and answers it later. Leaders that meet while they
//     collect yield by a fixed order, so that they do not wait for each other's pledges.
//   - Sites offer a slice and go on serving. A site with nothing to offer may decline,
//     and is then not in R.
package star
