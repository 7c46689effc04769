package tlsconf

import (
	"sync/atomic"
	"time"
)

// reloads counts the looks at the files that found something.
type reloads struct{ done, failed atomic.Uint64 }

// Expiry is when something of the files ends.
type Expiry struct {
	// What is own, ca or crl: the own certificate, that of a CA, or the first of the
	// revocation lists that is due.
	What string
	// Subject is the certificate's; empty for lists.
	Subject string
	// Left is how long that is from now; below 0 if it has ended.
	Left time.Duration
}

// Stats is what there is to watch of a Store.
type Stats struct {
	Expiries []Expiry
	// Reloaded and Failed count the looks at the files that found changed ones, and
	// such as were not in order.
	Reloaded, Failed uint64
}

// Stats returns what there is to watch now. Of two CAs of one name, while they are
// exchanged, the first is told.
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
