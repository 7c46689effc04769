package versions

import (
	"strings"
	"testing"
)

// TestRangeOfABuild: a build speaks its own version and the version before, and there is
// none before the first.
func TestRangeOfABuild(t *testing.T) {
	for build, want := range map[Version]Range{0: {1, 1}, 1: {1, 1}, 2: {1, 2}, 3: {2, 3}, 9: {8, 9}} {
		if got := Of(build); got != want {
			t.Errorf("build %d: %+v, want %+v", build, got, want)
		}
	}
	if got := Own(); got != Of(build) {
		t.Errorf("this build: %+v", got)
	}
}

// TestStampedBuild: the linker makes a build of another version, and no build of none.
func TestStampedBuild(t *testing.T) {
	defer func() { stamped = "" }()
	if stamped = "4"; Own() != (Range{3, 4}) {
		t.Errorf("stamped with 4: %+v", Own())
	}
	for _, bad := range []string{"0", "x", "-1", "65536"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a build is stamped with %q", bad)
				}
			}()
			stamped = bad
			Own()
		}()
	}
}

// TestHear: a version in force counts more than one that a new cluster would begin with.
// Of two in force the later counts; of two that are not the earlier.
func TestHear(t *testing.T) {
	for _, tc := range []struct {
		a, b    Speaker
		cluster Version
		begun   bool
	}{
		{Speaker{Cluster: 1, Begun: true}, Speaker{Cluster: 2, Begun: true}, 2, true},
		{Speaker{Cluster: 1, Begun: true}, Speaker{Cluster: 2}, 1, true},
		{Speaker{Cluster: 2, Begun: true}, Speaker{Cluster: 1}, 2, true},
		{Speaker{Cluster: 3}, Speaker{Cluster: 2}, 2, false},
	} {
		for _, pair := range [][2]Speaker{{tc.a, tc.b}, {tc.b, tc.a}} {
			if cluster, begun := pair[0].Hear(pair[1]); cluster != tc.cluster || begun != tc.begun {
				t.Errorf("%+v hears %+v: %d, %v", pair[0], pair[1], cluster, begun)
			}
		}
	}
}

// TestJudge: neighbours work together in a cluster of a version that both speak. All
// others are refused on both sides, with the versions of both and what to do.
func TestJudge(t *testing.T) {
	in := func(build, cluster Version) Speaker { return Speaker{Range: Of(build), Cluster: cluster, Begun: true} }
	fresh := func(build Version) Speaker { return Speaker{Range: Of(build), Cluster: build} }
	for _, tc := range []struct {
		us, eu Speaker
		want   string // empty: they work together
	}{
		{us: in(2, 1), eu: in(1, 1)},
		{us: in(2, 1), eu: in(2, 2)},
		{us: in(2, 2), eu: in(3, 2)},
		{us: in(2, 2), eu: in(3, 3), want: "the cluster is of version 3, for which the build of site us is too old; start there a build of version 3 or 4"},
		{us: in(2, 1), eu: in(3, 2)}, // us was away when version 2 was decided, and hears of it
		{us: in(3, 3), eu: in(2, 2), want: "the cluster is of version 3, for which the build of site eu is too old; start there a build of version 3 or 4"},
		{us: in(2, 1), eu: fresh(3), want: "the cluster is of version 1, for which the build of site eu is too new; start there a build of version 1"},
		{us: fresh(2), eu: fresh(3)},
		{us: fresh(2), eu: in(1, 1)},
		{us: in(2, 2), eu: in(1, 1), want: "the cluster is of version 2, for which the build of site eu is too old; start there a build of version 2 or 3"},
		{us: in(4, 3), eu: in(2, 2), want: "site eu has a build that speaks versions 1 to 2, site us a build that speaks versions 3 to 4: the build of site eu is too old; start there a build of version 3 or 4"},
		{us: in(1, 1), eu: in(3, 2), want: "site eu has a build that speaks versions 2 to 3, site us a build that speaks version 1 alone: the build of site eu is too new; start there a build of version 1 or 2"},
		{us: in(2, 2), eu: in(4, 3), want: "too new; start there a build of version 2 or 3, upgrade all sites by one version at a time"},
	} {
		err := Judge("us", tc.us, "eu", tc.eu)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v and %+v: %v, want %q", tc.us, tc.eu, err, tc.want)
		}
		if back := Judge("eu", tc.eu, "us", tc.us); (back == nil) != (err == nil) {
			t.Errorf("%+v and %+v: %v one way, %v the other", tc.us, tc.eu, err, back)
		}
	}
}

// TestData: a build uses data of the versions that it speaks.
func TestData(t *testing.T) {
	for _, tc := range []struct {
		build, data Version
		want        string
	}{
		{build: 2, data: 1},
		{build: 2, data: 2},
		{build: 1, data: 2, want: "the data is of version 2, this build speaks version 1 alone: the build is too old; start a build of version 2 or 3"},
		{build: 3, data: 1, want: "the data is of version 1, this build speaks versions 2 to 3: the build is too new; start a build of version 1, raise"},
	} {
		if err := Of(tc.build).Data(tc.data); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}
