// Package shares adds up the sites' shares of an entity, and reports whether they form a
// consistent cut. In a consistent cut every token is counted exactly once, tokens between
// sites included. If not, it tells which sites to ask again.
//
// The package asks no site, does not wait, and never guesses. A cut that does not account
// for every token of the limit is not called consistent.
//
// # Consistent cuts
//
// Each share is the durable state of its site at some moment between the start and the
// end of the read. At a site, the sum of tokens left, set aside and out changes only by a
// move between sites. A move is an instance applied, or a transfer sent or taken, or a
// part of what a site that leaves hands over. The
// shares fit together if each move is in all books that it concerns, or in none.
// Transfers under way are the exception: they are counted once, as in transit. A bequest of
// a site that leaves is in both books until it is acknowledged, so its numbers have to be
// the same at both sites.
//
// The tokens out at each site are of the moment of its own share. So their sum lies
// between the sum of the least and the sum of the most tokens out at each site during the
// read. It need not equal the tokens out of all sites at any single instant: a quota is
// not linearizable as a whole.
package shares
