// Package core is one site's deterministic core: the books of each entity, the handling
// of requests, and the driving of the redistribution protocol. It refuses to touch the
// world: it reads no clock, disk, network or random source except through its caller,
// starts no goroutine and never blocks.
//
// A [Core] takes an input at a time with [Core.Step] and gathers effects: records to
// persist, messages to send and replies to give. [Core.Drain] hands the gathered effects
// over. The caller's duties:
//
//  1. Call Step and Drain from one goroutine at a time. Call Serve of a shard from one
//     goroutine at a time, and not during Step and Drain; see [Core.Partition].
//  2. Carry out batches of effects in the order they were drained.
//  3. Make all records of a batch durable in the same transaction before sending any of
//     its messages or giving any of its replies. A batch without records still waits for
//     the batches before it: its replies reveal their state.
//  4. If a transaction fails, send and reply nothing of its batch or a later batch, and
//     abandon the core: its memory is ahead of its disk.
//  5. Once [Core.Refused] returns an error, send and reply nothing more, and abandon the
//     core.
//  6. Call Step with a [Wake] when the time of [Core.WakeAt] has come.
//
// Many inputs stepped and served between two Drains share a transaction: this is group
// commit.
//
// Inside, a core is a row of machines. Each has a part of the work, and the state of that
// part. It embeds the machines that it builds on, all of them earlier in the row, and calls
// no others:
//
//	common        the time, the entities, the effects gathered, the entities marked
//	peering       what other sites have told of their tokens
//	forecasting   the demand for each entity
//	charging      tokens between the books and the makers of requests
//	reading       reads, listings, watches
//	assessing     an entity's situation, here and elsewhere
//	remembering   requests answered, and acquires that wait
//	asking        outcomes of earlier attempts at other sites
//	leasing       leases, and the clock by which they end
//	repeating     repeated requests, and other sites' questions about attempts here
//	admitting     acquires and releases, the queues
//	limiting      changes of limits, debts
//	auditing      tokens released and never acquired
//	rebalancing   the protocols that move tokens
//	gossiping     reports to other sites, and theirs
//	sharding      the shards, and the entities split over them
//	cataloguing   which entities exist, and the mode
//	fencing       whether the site's data is the latest
//	serving       requests on shards
//
// Core hands each input to one of them. A machine marks the entities whose tokens or queue
// have changed. As the step ends, settle looks at the marked entities: it serves their
// queues, asks other sites for tokens if a trigger says so, and sets their timers.
//
// Five cores run in one goroutine as well as on five continents: the tests of this
// package and the simulator do the first, package site the second.
package core
