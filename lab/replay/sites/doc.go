// Package sites is samya as a system of a world of virtual time: the real cores of
// sites, each with a shell that makes its batches durable and carries their effects
// out. It refuses to ask anything of them but what a run has to: load comes from
// who drives the world, and what is broken at random on purpose is package sim's
// business.
package sites
