package store

import (
	"fmt"
	"math/rand/v2"
	"slices"

	storev1 "github.com/samya-db/samya/proto/samya/store/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/journal"
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
	set := &storev1.MemberSet{Version: m.Version}
	for _, site := range m.Sites {
		set.Sites = append(set.Sites, string(site))
	}
	for incarnation = o.Incarnation; incarnation == 0; {
		incarnation = message.Incarnation(rand.Uint64())
	}
	members, err := proto.Marshal(set)
	if err != nil {
		return m, 0, nil, fmt.Errorf("encoding the member set: %w", err)
	}
	identity, err := identityOp(o)
	return m, incarnation, []journal.Op{
		{Kind: journal.Put, Bucket: bucketGuard, Key: keyIncarnation, Value: sequenceKey(uint64(incarnation))},
		{Kind: journal.Put, Bucket: bucketIdentity, Key: keyMembers, Value: members},
		identity,
	}, err
}

// identityOp returns the record that names the site and cluster of the data, in the
// format of new data.
func identityOp(o *Options) (journal.Op, error) {
	raw, err := proto.Marshal(&storev1.Identity{Format: format, Cluster: o.Cluster, Site: string(o.Site)})
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
	switch identity.GetFormat() {
	case format:
	case formatNoLog, formatFlat:
		op, err := identityOp(o)
		if err != nil {
			return m, 0, nil, err
		}
		first = []journal.Op{op}
	default:
		return m, 0, nil, fmt.Errorf("%w: format %d, known are %d to %d", errFormat, identity.GetFormat(), formatNoLog, format)
	}
	if identity.GetCluster() != o.Cluster || identity.GetSite() != string(o.Site) {
		return m, 0, nil, fmt.Errorf("%w: it is of site %q of cluster %q, not site %q of cluster %q", ErrForeign,
			identity.GetSite(), identity.GetCluster(), o.Site, o.Cluster)
	}
	m.Version = set.GetVersion()
	for _, site := range set.GetSites() {
		m.Sites = append(m.Sites, core.SiteID(site))
	}
	if given := sorted(o.Members); len(given) > 0 && m.Version == 1 && !slices.Equal(given, m.Sites) {
		return m, 0, nil, fmt.Errorf("%w: it is %v, not %v; leave the option out, it only counts for a new data directory",
			ErrMembers, m.Sites, given)
	}
	incarnation, err = incarnationOf(base)
	return m, incarnation, first, err
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
