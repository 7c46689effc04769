// Package sim runs a whole cluster of site cores in one goroutine, on simulated
// clocks, disks and links that fail, and checks after every event what must
// hold. It refuses to touch the world: one seed always gives the same run.
// docs/testing.md tells of it at more length.
//
// What is real: package core with all below it, and, if asked for, the encoding
// of messages and records. What is simulated: the shell around it. Each site
// takes inputs, drains effects into batches, makes them durable in order after
// a delay, and only then lets their messages and replies out. A crash loses
// what is not durable, also half-way through the effects of a batch.
//
// # What is checked
//
// Each item is one or more [Invariant], whose names violations carry.
//
//   - Agreement: one value an instance, and a site applies none that no
//     majority has accepted.
//   - Conservation, exactly: what a site holds, has set aside and has out is its
//     first share plus its grants less its offers in the decided instances that
//     it has applied. Over all sites, with the decided instances settled for
//     those that have not applied them, that is the limit.
//   - Star instances: one value each, of pledges that are durable; committed once
//     all members have durably accepted, and then aborted by none; applied once;
//     forgotten only where all members have applied them.
//   - Order: what is durable takes no promise, counter or vote back, and a message
//     says nothing that its sender's disk does not.
//   - Books and requests: what a site has out is the sum of the requests that it
//     has recorded; no request is recorded twice, and no answer that promises a
//     record leaves before it is durable.
//   - Answers: a repeated request gets the same answer.
//   - The clients' view: acquires returned less releases invoked never exceed
//     the limit and the debt as decided, over all generations of the entity. Of a
//     site alone, and of an entity that moves took tokens in or out of, the bound is
//     the limit at the creation plus all raises since.
//   - Debts: a site that grants tokens of an entity in debt has as many left as are
//     owed. A site whose tokens are in a decided value that makes a debt grants
//     nothing before the site has applied the value.
//   - Surplus: no more is set aside of an entity than clients have released
//     without having acquired it, by the answers that they had.
//   - The catalogue: a site has exactly the entities, limits and versions that
//     the instances it has applied say, by a model that is independent of the
//     code under test.
//   - A change answered "nothing was done" is never decided.
//   - Time: every request is answered by its deadline, and a wake that is due
//     leaves nothing due.
//   - After healing: nothing stays set aside, nothing waits, all sites agree,
//     and a further change of each entity is decided.
package sim
