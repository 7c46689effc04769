// Package membership lets sites and app managers find each other from a single seed
// address, by gossip (SWIM, as hashicorp/memberlist implements it). It supplies addresses
// and health ONLY and never says how many sites there are. The member set, and with it
// the size of every quorum, is durable state of the sites. It is fixed at bootstrap and
// changed only by a decision. A node that gossip has not heard of, or thinks dead, may
// still be a member.
//
// A site of several nodes has a member for each node that ran it lately. The node of the
// highest term runs the site, even if gossip thinks that node dead: a node of a lower term
// cannot do anything for the site any more.
package membership
