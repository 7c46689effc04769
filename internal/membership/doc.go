// Package membership lets sites and app managers find each other from one seed
// address, by gossip (SWIM, as hashicorp/memberlist implements it). It supplies
// addresses and health ONLY and refuses to say how many sites there are: the
// member set, and with it the size of every quorum, is durable state of the
// sites, fixed at bootstrap and changed only by a decision. A node that gossip
// has not heard of, or thinks dead, is a member all the same.
package membership
