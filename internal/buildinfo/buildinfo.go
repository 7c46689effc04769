// Package buildinfo tells the version and revision a program was built from. It never
// guesses: a part that the build did not record is "unknown".
package buildinfo

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// unknown stands for a part that the build did not record.
const unknown = "unknown"

// Info is the version, revision and toolchain of a program.
type Info struct {
	// Version is the version of the release, or the module version of a development
	// build.
	Version string
	// Revision is the commit, at most 12 characters; Modified reports that the work tree
	// had further changes.
	Revision string
	Modified bool
	// Go is the version of the toolchain.
	Go string
	// Slow reports a build without inlining, which is quick to make: for demos, and not for
	// measurements.
	Slow bool
}

// revisionLength bounds the characters of Revision.
const revisionLength = 12

// Read returns the information that the Go toolchain recorded. A release names its
// version and revision itself, since it is built outside of the repository; both are
// empty otherwise.
func Read(releaseVersion, releaseRevision string) Info {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	i := Info{Version: info.Main.Version, Go: cmp.Or(info.GoVersion, unknown)}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			i.Revision = s.Value
		case "vcs.modified":
			i.Modified = s.Value == "true"
		case "-gcflags":
			i.Slow = slices.Contains(strings.Fields(s.Value), "-l")
		}
	}
	if releaseVersion != "" {
		i.Version, i.Revision, i.Modified = releaseVersion, releaseRevision, false
	}
	i.Version = cmp.Or(i.Version, unknown)
	i.Revision = i.Revision[:min(revisionLength, len(i.Revision))]
	return i
}

// String returns, for example, "samya v1.2.0 0123456789ab, go1.26".
func (i Info) String() string {
	revision, modified, slow := "", "", ""
	if i.Revision != "" {
		revision = " " + i.Revision
	}
	if i.Modified {
		modified = ", modified"
	}
	if i.Slow {
		slow = ", built without inlining, for a demo"
	}
	return fmt.Sprintf("samya %s%s%s, %s%s", i.Version, revision, modified, i.Go, slow)
}

// Collector returns the metric samya_build_info: always 1, with the information as
// labels, to be joined with other metrics of the same instance.
func (i Info) Collector() prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "samya_build_info",
		Help: "Always 1; the labels tell what the program was built from.",
		ConstLabels: prometheus.Labels{
			"version": cmp.Or(i.Version, unknown), "revision": cmp.Or(i.Revision, unknown), "goversion": cmp.Or(i.Go, unknown),
		},
	})
	info.Set(1)
	return info
}
