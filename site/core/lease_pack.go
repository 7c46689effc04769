package core

import (
	"encoding/json"
	"errors"
	"fmt"
)

// packedLease is a lease on its way to an heir.
type packedLease struct {
	ID     string `json:"id"`
	Holder string `json:"holder,omitempty"`
	// TTL is the time to live, Remaining the time left when it was packed; milliseconds.
	TTL       Tick `json:"ttl"`
	Remaining Tick `json:"remaining"`
}

func (c *leasing) packLease(l *lease) []byte {
	p := packedLease{ID: l.ID, Holder: l.Holder, TTL: l.TTL, Remaining: l.until - min(l.until, c.now.Tick)}
	b, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("core: plain data does not marshal: %v", err))
	}
	return b
}

func unpackLease(data []byte) (packedLease, error) {
	var p packedLease
	if err := json.Unmarshal(data, &p); err != nil {
		return packedLease{}, fmt.Errorf("decoding a lease of another site: %w", err)
	}
	if p.ID == "" {
		return packedLease{}, errors.New("decoding a lease of another site: it has no id")
	}
	return p, nil
}
