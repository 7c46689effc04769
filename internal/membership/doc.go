// Package membership lets sites and app managers find each other from a single seed
// address, by gossip (SWIM, as hashicorp/memberlist implements it). It supplies addresses
// and health ONLY and never says how many sites there are. The member set, and with it
// the size of every quorum, is durable state of the sites. It is fixed at bootstrap and
// changed only by a decision. A node that gossip has not heard of, or thinks dead, may
// still be a member.
package membership
