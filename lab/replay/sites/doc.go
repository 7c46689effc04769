// Package sites is samya as a system of a world of virtual time: the real cores of
// sites, each with a shell that makes its batches durable and carries out their
// effects. It makes no requests beyond the needs of a run: the driver of the world
// makes the load. Random faults belong to package sim.
package sites
