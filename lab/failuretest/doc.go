// Package failuretest makes real sites fail in every way that the machine they
// run on can, and checks what clients were promised; it holds tests alone, and
// judges sites by nothing but their API, their files, their system calls and
// their ends.
//
// Each file tells one story: kill -9 under load, kills and disk errors at any
// write or sync, the order of system calls around a commit, chaos, partitions,
// retries at other sites, histories of one site, repeats, foreign data
// directories, memory, and stopping. Each story has a short form, for every run of
// the tests, and a long one, for `make chaos`.
package failuretest
