// Package metis reads and writes the files of METIS: graphs, and the parts of their
// vertices. It cuts no graph, and judges a graph no further than its format does.
package metis
