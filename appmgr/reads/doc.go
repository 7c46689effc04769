// Package reads answers the reads of the public API: of an entity at one site or at all
// sites, watches, and lists of entities, leases and sites. It adds up the sites' shares of
// an entity, and tells whether they are a consistent cut. It changes nothing, with two
// exceptions: SetForecast and RecoverCluster go to each site as reads do.
package reads
