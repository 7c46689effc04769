// Package versions has the promise between builds: which versions of messages and stored
// data a build speaks, and which builds work together. It refuses to decide the version
// of a cluster: the catalogue does.
//
// A build of version N speaks N and N−1. A cluster has a version of its own: messages and
// records are written in that version's form, whatever newer builds could write. So a
// site can go back to the build before until the cluster's version is raised.
package versions

import (
	"fmt"
	"strconv"
)

// Version is a version of all messages and stored data together. 0 stands for none.
type Version uint32

const (
	// First is the version of the formats with which the promise began.
	First Version = 1
	// Members is the version of clusters that can change their set of members.
	Members Version = 2
)

// build is the version of this build, unless stamped.
const build = Members

// stamped makes a build of another version, for tests: a decimal number that the linker
// sets. Such a build has the formats of this build, and the manners of that version.
var stamped string

// Range has the versions that a build speaks.
type Range struct{ Oldest, Newest Version }

// Of returns the versions that the build of a version speaks.
func Of(build Version) Range {
	return Range{Oldest: max(First, build-min(build, 1)), Newest: max(First, build)}
}

// Own returns the versions that this build speaks.
func Own() Range {
	if stamped == "" {
		return Of(build)
	}
	n, err := strconv.ParseUint(stamped, 10, 16)
	if err != nil || n == 0 {
		panic(fmt.Sprintf("versions: a build was stamped with version %q", stamped))
	}
	return Of(Version(n))
}

// Speaks reports whether the range has a version.
func (r Range) Speaks(v Version) bool { return r.Oldest <= v && v <= r.Newest }

// String returns, for example, "versions 1 to 2", or "version 1 alone".
func (r Range) String() string {
	if r.Oldest == r.Newest {
		return fmt.Sprintf("version %d alone", r.Newest)
	}
	return fmt.Sprintf("versions %d to %d", r.Oldest, r.Newest)
}

// Speaker is what a site tells of its versions.
type Speaker struct {
	// Range has the versions that the site's build speaks.
	Range
	// Cluster is the version of the cluster as far as the site knows.
	Cluster Version
	// Begun is false as long as the site knows of no decision, and Cluster is the version
	// that a new cluster would begin with.
	Begun bool
}

// Hear returns the version of the cluster that a site knows once it has heard another,
// and whether the cluster has begun with it. A version that has begun counts more than
// another. Of two that have begun the later counts, of two that have not the
// earlier.
func (s Speaker) Hear(other Speaker) (cluster Version, begun bool) {
	switch {
	case s.Begun == other.Begun && s.Begun:
		return max(s.Cluster, other.Cluster), true
	case s.Begun == other.Begun:
		return min(s.Cluster, other.Cluster), false
	case s.Begun:
		return s.Cluster, true
	}
	return other.Cluster, true
}

// Judge returns the reason why site mine and site theirs cannot work together; nil if
// they can. Its text has the versions of both, and names the build to start.
func Judge(mine string, m Speaker, theirs string, t Speaker) error {
	sides := fmt.Sprintf("site %s has a build that speaks %v, site %s a build that speaks %v", theirs, t.Range, mine, m.Range)
	switch cluster, _ := m.Hear(t); {
	case t.Newest < m.Oldest:
		return fmt.Errorf("%s: the build of site %s is too old; start there a build of version %d or %d", sides, theirs, m.Oldest, m.Newest)
	case t.Oldest > m.Newest:
		return fmt.Errorf("%s: the build of site %s is too new; start there a build of version %d or %d, "+
			"upgrade all sites by one version at a time, and raise the version of the cluster after each", sides, theirs, m.Newest, m.Newest+1)
	case !t.Speaks(cluster):
		return fmt.Errorf("%s: %w", sides, unfit(theirs, t.Range, cluster))
	case !m.Speaks(cluster):
		return fmt.Errorf("%s: %w", sides, unfit(mine, m.Range, cluster))
	}
	return nil
}

// unfit is the error about a build that does not speak the version of its cluster.
func unfit(site string, r Range, cluster Version) error {
	if r.Newest < cluster {
		return fmt.Errorf("the cluster is of version %d, for which the build of site %s is too old; start there a build of version %d or %d",
			cluster, site, cluster, cluster+1)
	}
	return fmt.Errorf("the cluster is of version %d, for which the build of site %s is too new; start there a build of version %d, "+
		"raise the version of the cluster, then upgrade", cluster, site, cluster)
}

// Data returns the reason why a build that speaks r cannot use the data of a site in a
// cluster of a version; nil if it can.
func (r Range) Data(cluster Version) error {
	switch {
	case r.Newest < cluster:
		return fmt.Errorf("the data is of version %d, this build speaks %v: the build is too old; start a build of version %d or %d",
			cluster, r, cluster, cluster+1)
	case r.Oldest > cluster:
		return fmt.Errorf("the data is of version %d, this build speaks %v: the build is too new; start a build of version %d, "+
			"raise the version of the cluster, then upgrade", cluster, r, cluster)
	}
	return nil
}
