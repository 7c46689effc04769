package tlsconf

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// Why a certificate is refused, in addition to the errors of package x509.
var (
	// ErrRevoked: the certificate is in a revocation list.
	ErrRevoked = errors.New("the certificate is revoked")
	// errNone: there is no certificate.
	errNone = errors.New("no certificate")
)

// maxJudged bounds the remembered verdicts on certificates.
const maxJudged = 16384

// Server returns the settings of a listener. A caller may have no certificate, but a
// certificate that it shows must be good. Server does not judge the rights of callers.
func (s *Store) Server() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS13,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.certificate() },
		// The chain is verified below, with the content of the files at that time.
		ClientAuth: tls.RequestClientCert,
		VerifyConnection: func(cs tls.ConnectionState) error {
			if len(cs.PeerCertificates) == 0 {
				return nil
			}
			_, err := s.current.Load().verify(cs.PeerCertificates, x509.ExtKeyUsageClientAuth, "", s.now())
			return err
		},
		// A resumed session would skip the checks against changed files.
		SessionTicketsDisabled: true,
	}
}

// Client returns the settings of a connection to the named holder, by whatever address:
// an address from gossip proves nothing, the certificate does.
func (s *Store) Client(to Identity) *tls.Config {
	return s.client(func(cs tls.ConnectionState) error {
		leaf, err := s.current.Load().verify(cs.PeerCertificates, x509.ExtKeyUsageServerAuth, "", s.now())
		if err != nil {
			return err
		}
		id, err := IdentityOf(leaf)
		if err != nil {
			return err
		}
		if id != to {
			return fmt.Errorf("%w: %s answers instead of %s", ErrIdentity, id, to)
		}
		return nil
	})
}

// Dial returns the settings of a connection to a host, by its name or IP address. The
// certificate must be for this host. The settings are for callers of the API.
func (s *Store) Dial(host string) *tls.Config {
	cfg := s.client(func(cs tls.ConnectionState) error {
		_, err := s.current.Load().verify(cs.PeerCertificates, x509.ExtKeyUsageServerAuth, host, s.now())
		return err
	})
	cfg.ServerName = host
	return cfg
}

func (s *Store) client(verify func(tls.ConnectionState) error) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		// The chain is verified by verify, with the content of the files at that time.
		InsecureSkipVerify: true,
		VerifyConnection:   verify,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if own := s.current.Load().own; own != nil {
				return own, nil
			}
			return &tls.Certificate{}, nil
		},
	}
}

func (s *Store) certificate() (*tls.Certificate, error) {
	if own := s.current.Load().own; own != nil {
		return own, nil
	}
	return nil, errNone
}

// Good returns nil if the certificate of a chain that a handshake let in is still good,
// and the reason if not. Servers ask before every call of a connection.
func (s *Store) Good(chain []*x509.Certificate) error {
	if len(chain) == 0 {
		return errNone
	}
	leaf, snap, now := chain[0], s.current.Load(), s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.judgedBy != snap || len(s.judged) >= maxJudged {
		clear(s.judged)
		s.judgedBy = snap
	}
	v, known := s.judged[leaf]
	if !known || v.err == nil && now.After(v.until) {
		// The allowed uses of a certificate do not change.
		v.until, v.err = snap.judge(chain, x509.ExtKeyUsageAny, "", now)
		s.judged[leaf] = v
	}
	return v.err
}

// verdict is the result of verifying a certificate: why it is not good, or until when it
// is good.
type verdict struct {
	err   error
	until time.Time
}

// verify returns the first of the certificates if the CAs vouch for it at the time.
func (s *snapshot) verify(chain []*x509.Certificate, use x509.ExtKeyUsage, host string, now time.Time) (*x509.Certificate, error) {
	if len(chain) == 0 {
		return nil, errNone
	}
	if _, err := s.judge(chain, use, host, now); err != nil {
		return nil, err
	}
	return chain[0], nil
}

// judge returns why the CAs do not vouch for the first of the certificates, or until when
// they do. The end of a certificate between it and its CA counts as well.
func (s *snapshot) judge(chain []*x509.Certificate, use x509.ExtKeyUsage, host string, now time.Time) (until time.Time, err error) {
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	chains, err := chain[0].Verify(x509.VerifyOptions{
		Roots: s.pool, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{use}, DNSName: host,
	})
	if err != nil {
		return time.Time{}, err
	}
	for _, c := range chains {
		if s.isRevoked(c) {
			continue
		}
		if end := endOf(c); end.After(until) {
			until = end
		}
	}
	if until.IsZero() {
		return time.Time{}, ErrRevoked
	}
	return until, nil
}

// endOf returns when the first certificate of a chain ends.
func endOf(chain []*x509.Certificate) time.Time {
	end := chain[0].NotAfter
	for _, c := range chain[1:] {
		if c.NotAfter.Before(end) {
			end = c.NotAfter
		}
	}
	return end
}

// isRevoked reports whether any certificate of the chain is revoked.
func (s *snapshot) isRevoked(chain []*x509.Certificate) bool {
	for _, c := range chain {
		if _, ok := s.revoked[revocation{string(c.RawIssuer), string(c.SerialNumber.Bytes())}]; ok {
			return true
		}
	}
	return false
}
