// Package sim runs a whole cluster of site cores in a single goroutine, on simulated
// clocks, disks and links that fail. It checks the invariants after every event. It
// refuses to touch the world: a seed always gives the same run. docs/testing.md tells of
// it at more length.
//
// Package core with all below it is real, and, if asked for, the encoding of messages and
// records. The shell around it is simulated. Each site takes inputs, drains effects into
// batches, makes them durable in order after a delay, and only then lets their messages
// and replies out. A crash loses everything not yet durable, also half-way through the
// effects of a batch.
//
// # Checks
//
// Each item is checked by an [Invariant] or several. Violations carry their names.
//
//   - Agreement: an instance decides a single value, and a site applies no value that no
//     majority has accepted.
//   - Conservation, exactly: the tokens that a site holds, has set aside and has out are
//     its first share plus its grants less its offers. These are the grants and offers
//     in the decided instances that it has applied. Over all sites they are the limit,
//     with the decided instances settled for the sites that have not applied them.
//   - Star instances: each has a single value, of durable pledges. It is committed once
//     all members have durably accepted, and then no member aborts it. It is applied
//     once, and forgotten only where all members have applied it.
//   - Order: durable state takes no promise, counter or vote back, and a message says
//     nothing that its sender's disk does not.
//   - Books and requests: the tokens that a site has out are the sum of its recorded
//     requests. No request is recorded twice, and no answer that promises a record
//     leaves before the record is durable.
//   - Answers: a repeated request gets the same answer.
//   - The clients' view: acquires returned less releases invoked never exceed the limit
//     and the debt as decided, over all generations of the entity. For a site alone, or
//     an entity that moves took tokens in or out of, the bound is the first limit plus
//     all raises since.
//   - Debts: a site that grants tokens of an entity in debt has at least the debt left.
//     A site with tokens in a decided value that makes a debt grants nothing before the
//     site has applied the value.
//   - Surplus: no more is set aside of an entity than clients have released without
//     having acquired it, by the answers that they had.
//   - The catalogue: a site has exactly the entities, limits and versions that its
//     applied instances say, by a model independent of the code under test.
//   - A change answered "nothing was done" is never decided.
//   - Time: every request is answered by its deadline, and a wake that is due leaves
//     nothing due.
//   - After healing: nothing stays set aside, nothing waits, all sites agree, and a
//     further change of each entity is decided.
package sim
