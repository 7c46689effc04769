// Package core is one site's deterministic core: the books of each entity, the
// handling of requests, and the driving of the redistribution protocol. It
// refuses to touch the world: it reads no clock, disk, network or random
// source that is not handed to it, starts no goroutine and never blocks.
//
// A [Core] takes one input at a time with [Core.Step] and gathers effects:
// records to persist, messages to send and replies to give. [Core.Drain] hands
// the gathered effects over. The caller's duties:
//
//  1. Step and Drain are called from one goroutine at a time. So is Serve for each
//     lane, at any time but during those; see [Core.Partition].
//  2. Batches of effects are carried out in the order they were drained.
//  3. Of one batch, all records become durable in one transaction before any of
//     its messages is sent or any of its replies given. A batch without records
//     still waits for the batches before it: its replies reveal their state.
//  4. If a transaction fails nothing of that batch or a later one leaves, and
//     the core is abandoned: its memory is ahead of its disk.
//  5. Nothing leaves any more, and the core is abandoned, once [Core.Refused]
//     returns an error.
//  6. Step is called with a [Wake] when the time of [Core.WakeAt] has come.
//
// Many inputs stepped and served between two Drains share one transaction: that is
// group commit.
//
// Five cores run in one goroutine as well as on five continents: the tests of
// this package and the simulator do the first, package site the second.
package core
