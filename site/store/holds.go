package store

import (
	"fmt"

	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/samya-db/samya/proto/samya/store/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/wire"
)

// putHolds stores claims and leases, whose numbers only grow: new ones join at
// the end.
func putHolds(tx *bolt.Tx, r *core.Records) error {
	claims, leases := tx.Bucket(bucketClaims), tx.Bucket(bucketLeases)
	for i := range r.Claims {
		raw, err := encodeClaim(&r.Claims[i])
		if err != nil {
			return fmt.Errorf("encoding claim %d: %w", r.Claims[i].Number, err)
		}
		if err := claims.Put(sequenceKey(uint64(r.Claims[i].Number)), raw); err != nil {
			return fmt.Errorf("storing claim %d: %w", r.Claims[i].Number, err)
		}
	}
	for _, n := range r.SettledClaims {
		if err := claims.Delete(sequenceKey(uint64(n))); err != nil {
			return fmt.Errorf("deleting claim %d: %w", n, err)
		}
	}
	for i := range r.Leases {
		raw, err := encodeLease(&r.Leases[i])
		if err != nil {
			return fmt.Errorf("encoding lease %d: %w", r.Leases[i].Number, err)
		}
		if err := leases.Put(sequenceKey(r.Leases[i].Number), raw); err != nil {
			return fmt.Errorf("storing lease %d: %w", r.Leases[i].Number, err)
		}
	}
	for _, n := range r.EndedLeases {
		if err := leases.Delete(sequenceKey(n)); err != nil {
			return fmt.Errorf("deleting lease %d: %w", n, err)
		}
	}
	return nil
}

func encodeClaim(c *core.ClaimRecord) ([]byte, error) {
	p := &storev1.Claim{Ask: wire.ClaimAsk(&c.ClaimAsk), Generation: c.Generation}
	// The key under which it stands says its number.
	p.Ask.Number = 0
	for _, s := range c.Sites {
		p.Sites = append(p.Sites, string(s))
	}
	return proto.Marshal(p)
}

func decodeClaim(number uint64, raw []byte) (core.ClaimRecord, error) {
	var p storev1.Claim
	if err := proto.Unmarshal(raw, &p); err != nil {
		return core.ClaimRecord{}, fmt.Errorf("claim %d: %w", number, err)
	}
	ask, err := wire.ClaimAskOf(p.GetAsk())
	if err != nil {
		return core.ClaimRecord{}, fmt.Errorf("claim %d: %w", number, err)
	}
	c := core.ClaimRecord{ClaimAsk: ask, Generation: p.GetGeneration()}
	c.Number = core.ClaimNumber(number)
	for _, s := range p.GetSites() {
		c.Sites = append(c.Sites, core.SiteID(s))
	}
	return c, nil
}

func encodeLease(l *core.LeaseRecord) ([]byte, error) {
	return proto.Marshal(&storev1.Lease{
		Id: l.ID, Entity: l.Entity, Generation: l.Generation, Tokens: int64(l.Tokens), Expires: l.Expires,
		Ttl: int64(l.TTL), Holder: l.Holder,
	})
}

func decodeLease(number uint64, raw []byte) (core.LeaseRecord, error) {
	var p storev1.Lease
	if err := proto.Unmarshal(raw, &p); err != nil {
		return core.LeaseRecord{}, fmt.Errorf("lease %d: %w", number, err)
	}
	return core.LeaseRecord{
		Number: number, ID: p.GetId(), Entity: p.GetEntity(), Generation: p.GetGeneration(),
		Tokens: core.Tokens(p.GetTokens()), Expires: p.GetExpires(), TTL: core.Tick(p.GetTtl()), Holder: p.GetHolder(),
	}, nil
}
