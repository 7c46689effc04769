// Package shares adds up what the sites tell of one entity, each of its own
// share, and says whether that is a consistent cut: every token is counted
// exactly once, those between sites included. If it is none, it says which sites
// to ask again.
//
// It refuses to ask anybody, to wait, and to guess: a cut that does not account
// for every token of the limit is not called consistent.
//
// # What a consistent cut is
//
// Each share is what was durable at its site at some moment between the start
// and the end of the read. Left, set aside and out together change at a site only
// by a move between sites: an instance applied, a transfer sent or taken. The
// shares fit together if each move is in all of the books that it concerns or in
// none, but for transfers that are under way: those are counted once, as in
// transit. What is out of each site is of its own moment, so their sum lies
// between the sums of the least and of the most that was out of each meanwhile. It
// need not be what was out of all at any one instant: a quota is not linearizable
// as a whole.
package shares
