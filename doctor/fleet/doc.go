// Package fleet looks at the processes of a cluster: app managers tell the sites, and all
// processes tell metrics. The package refuses to judge, and to send requests that change
// anything.
package fleet
