package tlsconf

import (
	"sync/atomic"
	"time"
)

// reloads counts the looks at the files that found changes or faults.
type reloads struct{ done, failed atomic.Uint64 }

// Expiry is the end of a certificate or of a revocation list.
type Expiry struct {
	// What is own, ca or crl: the own certificate, the certificate of a CA, or the
	// revocation list that is due first.
	What string
	// Subject is the subject of the certificate; empty for lists.
	Subject string
	// Left is the time until the end; below 0 if it has passed.
	Left time.Duration
}

// Stats are the figures of a Store.
type Stats struct {
	Expiries []Expiry
	// Reloaded counts the looks that found good changed files; Failed counts the looks
	// that found bad files.
	Reloaded, Failed uint64
}

// Stats returns the present figures. Of two CAs with the same name, while they are
// exchanged, it tells only the first.
func (s *Store) Stats() Stats {
	snap, now := s.current.Load(), s.now()
	st := Stats{Reloaded: s.reloads.done.Load(), Failed: s.reloads.failed.Load()}
	if snap.own != nil {
		st.Expiries = append(st.Expiries, Expiry{"own", snap.own.Leaf.Subject.String(), snap.own.Leaf.NotAfter.Sub(now)})
	}
	told := map[string]bool{}
	for _, c := range snap.cas {
		if subject := c.Subject.String(); !told[subject] {
			told[subject] = true
			st.Expiries = append(st.Expiries, Expiry{"ca", subject, c.NotAfter.Sub(now)})
		}
	}
	if !snap.oldest.IsZero() {
		st.Expiries = append(st.Expiries, Expiry{What: "crl", Left: snap.oldest.Sub(now)})
	}
	return st
}
