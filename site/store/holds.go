package store

import (
	"fmt"

	storev1 "github.com/samya-db/samya/proto/samya/store/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/wire"
	"google.golang.org/protobuf/proto"
)

func (s *Store) encodeHolds(r *stored.Records) error {
	for i := range r.Claims {
		c := &r.Claims[i]
		raw, err := encodeClaim(c)
		if err := s.put(bucketClaims, s.numbered(uint64(c.Number)), raw, err, "claim", c.Number); err != nil {
			return err
		}
	}
	for _, n := range r.SettledClaims {
		s.batch.Delete(bucketClaims, s.numbered(uint64(n)))
	}
	for i := range r.Leases {
		l := &r.Leases[i]
		raw, err := encodeLease(l)
		if err := s.put(bucketLeases, s.numbered(l.Number), raw, err, "lease", l.Number); err != nil {
			return err
		}
	}
	for _, n := range r.EndedLeases {
		s.batch.Delete(bucketLeases, s.numbered(n))
	}
	return nil
}

func encodeClaim(c *stored.Claim) ([]byte, error) {
	p := &storev1.Claim{Ask: wire.ClaimAsk(&c.ClaimAsk), Generation: c.Generation, Sites: wire.Names(c.Sites)}
	// The key in the bucket is the number.
	p.Ask.Number = 0
	return proto.Marshal(p)
}

func decodeClaim(number uint64, raw []byte) (stored.Claim, error) {
	var p storev1.Claim
	if err := proto.Unmarshal(raw, &p); err != nil {
		return stored.Claim{}, fmt.Errorf("claim %d: %w", number, err)
	}
	ask, err := wire.ClaimAskOf(p.GetAsk())
	if err != nil {
		return stored.Claim{}, fmt.Errorf("claim %d: %w", number, err)
	}
	c := stored.Claim{ClaimAsk: ask, Generation: p.GetGeneration(), Sites: wire.SitesOf(p.GetSites())}
	c.Number = message.ClaimNumber(number)
	return c, nil
}

func encodeLease(l *stored.Lease) ([]byte, error) {
	var above []*storev1.Mark
	for _, m := range l.Above {
		above = append(above, &storev1.Mark{Generation: m.Generation, Window: m.Window})
	}
	return proto.Marshal(&storev1.Lease{
		Id: l.ID, Entity: l.Entity, Generation: l.Generation, Tokens: int64(l.Tokens), Expires: l.Expires,
		Ttl: int64(l.TTL), Holder: l.Holder, Window: l.Window, Share: l.Share, Above: above,
	})
}

func decodeLease(number uint64, raw []byte) (stored.Lease, error) {
	var p storev1.Lease
	if err := proto.Unmarshal(raw, &p); err != nil {
		return stored.Lease{}, fmt.Errorf("lease %d: %w", number, err)
	}
	var above []stored.Mark
	for _, m := range p.GetAbove() {
		above = append(above, stored.Mark{Generation: m.GetGeneration(), Window: m.GetWindow()})
	}
	return stored.Lease{
		Number: number, ID: p.GetId(), Entity: p.GetEntity(), Generation: p.GetGeneration(),
		Tokens: core.Tokens(p.GetTokens()), Expires: p.GetExpires(), TTL: core.Tick(p.GetTtl()), Holder: p.GetHolder(),
		Window: p.GetWindow(), Share: p.GetShare(), Above: above,
	}, nil
}
