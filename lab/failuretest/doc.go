// Package failuretest makes real sites fail in every way that their machine can fail, and
// checks the promises made to clients. It holds tests alone. It judges sites only by
// their API, their files, their system calls and their ends.
//
// Each file tells a story: kill -9 under load, kills and disk errors at any write or
// sync, the order of system calls around a commit, chaos, partitions, retries at other
// sites, histories of a single site, repeats, foreign data directories, memory, and
// stopping. Each story has a short form, for every run of the tests, and a long form, for
// `make chaos`.
package failuretest
