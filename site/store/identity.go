package store

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/samya-db/samya/internal/versions"
	storev1 "github.com/samya-db/samya/proto/samya/store/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/journal"
	"github.com/samya-db/samya/site/wire"
	"google.golang.org/protobuf/proto"
)

// bootstrap returns the member set, the incarnation and the first records of new data.
func bootstrap(o *Options) (m Members, incarnation message.Incarnation, first []journal.Op, err error) {
	switch {
	case len(o.Members) > 0:
		m = Members{Version: 1, Sites: sorted(o.Members)}
	case o.Join:
		m = Members{Sites: []core.SiteID{o.Site}}
	default:
		return m, 0, nil, ErrNoMembers
	}
	if !slices.Contains(m.Sites, o.Site) {
		return m, 0, nil, fmt.Errorf("site %q is not among the members %v", o.Site, m.Sites)
	}
	set := &storev1.MemberSet{Version: m.Version, Sites: wire.Names(m.Sites)}
	for incarnation = o.Incarnation; incarnation == 0; {
		incarnation = message.Incarnation(rand.Uint64())
	}
	members, err := proto.Marshal(set)
	if err != nil {
		return m, 0, nil, fmt.Errorf("encoding the member set: %w", err)
	}
	identity, err := identityOp(o, cmp.Or(o.Begun, o.Versions.Newest))
	return m, incarnation, []journal.Op{
		{Kind: journal.Put, Bucket: bucketGuard, Key: keyIncarnation, Value: sequenceKey(uint64(incarnation))},
		{Kind: journal.Put, Bucket: bucketIdentity, Key: keyMembers, Value: members},
		identity,
	}, err
}

// identityOp returns the record that names the site and cluster of the data, and the
// version of the cluster.
func identityOp(o *Options, v versions.Version) (journal.Op, error) {
	identity := &storev1.Identity{Format: formatFirst, Cluster: o.Cluster, Site: string(o.Site)}
	if v != versions.First {
		identity.Format, identity.Version = formatVersioned, uint32(v)
	}
	raw, err := proto.Marshal(identity)
	if err != nil {
		return journal.Op{}, fmt.Errorf("encoding whose data it is: %w", err)
	}
	return journal.Op{Kind: journal.Put, Bucket: bucketIdentity, Key: keyIdentity, Value: raw}, nil
}

// claim checks that the data is this site's. For data of an earlier format it returns
// the records to write before the site goes on.
func claim(base eacher, o *Options) (m Members, incarnation message.Incarnation, first []journal.Op, err error) {
	identity, set, err := named(base)
	if err != nil {
		return m, 0, nil, err
	}
	version, err := versionOf(identity)
	if err != nil {
		return m, 0, nil, err
	}
	if err := cmp.Or(o.Versions, versions.Own()).Data(version); err != nil {
		return m, 0, nil, fmt.Errorf("%w: %w", errVersion, err)
	}
	if identity.GetFormat() < formatFirst {
		op, err := identityOp(o, version)
		if err != nil {
			return m, 0, nil, err
		}
		first = []journal.Op{op}
	}
	if identity.GetCluster() != o.Cluster || identity.GetSite() != string(o.Site) {
		return m, 0, nil, fmt.Errorf("%w: it is of site %q of cluster %q, not site %q of cluster %q", ErrForeign,
			identity.GetSite(), identity.GetCluster(), o.Site, o.Cluster)
	}
	m.Version, m.Sites = set.GetVersion(), wire.SitesOf(set.GetSites())
	if given := sorted(o.Members); len(given) > 0 && m.Version == 1 && !slices.Equal(given, m.Sites) {
		return m, 0, nil, fmt.Errorf("%w: it is %v, not %v; leave the option out, it only counts for a new data directory",
			ErrMembers, m.Sites, given)
	}
	incarnation, err = incarnationOf(base)
	return m, incarnation, first, err
}

// versionOf returns the version of the cluster that an identity names.
func versionOf(identity *storev1.Identity) (versions.Version, error) {
	switch f, v := identity.GetFormat(), versions.Version(identity.GetVersion()); {
	case f >= formatNoLog && f <= formatFirst && v == 0:
		return versions.First, nil
	case f == formatVersioned && v > versions.First:
		return v, nil
	default:
		return 0, fmt.Errorf("%w: format %d of version %d; known are the formats %d to %d", errFormat, f, v, formatNoLog, formatVersioned)
	}
}

// raise has the data name another version of the cluster, before anything in that
// version's form is appended to the log. It writes to the base itself: a build that does
// not speak the version must refuse the data before it reads the log. A log that other
// nodes read as well has to tell them. There the version comes with the commit or not at
// all, and openOn looks once more when the log was read.
func (s *Store) raise(v versions.Version) error {
	op, err := identityOp(&s.options, v)
	if err != nil {
		return err
	}
	if s.options.Over != nil {
		s.batch.Put(op.Bucket, op.Key, op.Value)
		return nil
	}
	s.checkpoints.stepping.Lock()
	defer s.checkpoints.stepping.Unlock()
	if err := s.base.Apply([]journal.Op{op}, nil); err != nil {
		return fmt.Errorf("writing version %d of the cluster: %w", v, err)
	}
	return nil
}

// named reads whose data it is, and the member set.
func named(base eacher) (identity *storev1.Identity, set *storev1.MemberSet, err error) {
	identity, set = new(storev1.Identity), new(storev1.MemberSet)
	err = base.Each(bucketIdentity, func(k, v []byte) error {
		var err error
		switch string(k) {
		case string(keyIdentity):
			err = proto.Unmarshal(v, identity)
		case string(keyMembers):
			err = proto.Unmarshal(v, set)
		}
		if err != nil {
			return fmt.Errorf("%w: %s: %w", errFormat, k, err)
		}
		return nil
	})
	return identity, set, err
}

func sorted(sites []core.SiteID) []core.SiteID {
	return slices.Compact(slices.Sorted(slices.Values(sites)))
}

// incarnationOf reads the incarnation of the data.
func incarnationOf(base eacher) (message.Incarnation, error) {
	var r stored.Restored
	if err := base.Each(bucketGuard, func(k, v []byte) error { return guarded(k, v, &r) }); err != nil {
		return 0, fmt.Errorf("%w: %w", errFormat, err)
	}
	if r.Incarnation == 0 {
		return 0, fmt.Errorf("%w: it has no incarnation", errFormat)
	}
	return r.Incarnation, nil
}
