package tlsconf

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/samya-db/samya/internal/reload"
)

// pollInterval is the time between two looks at the files.
const pollInterval = 10 * time.Second

// maxFile bounds the size of a file, in bytes.
const maxFile = 8 << 20

// Files names the files of keys and certificates, in PEM.
type Files struct {
	// Cert and Key are this process's own certificate, followed by the intermediate
	// certificates, and its key. A client may have neither.
	Cert, Key string
	// CA holds the certificates of the trusted CAs: the cluster's own CA, and the next CA
	// as well while the CAs are exchanged.
	CA string
	// CRL holds revocation lists signed by these CAs; empty for none.
	CRL string
}

// Set reports whether any file is named.
func (f Files) Set() bool { return f != Files{} }

// Store holds the content of the files, as of the last look at which all files were good.
// Its methods may be called from several goroutines.
type Store struct {
	files Files
	log   *slog.Logger
	now   func() time.Time

	current atomic.Pointer[snapshot]
	reloads reloads

	failing reload.Fault

	mu sync.Mutex
	// conns are the connections to peers with a certificate.
	conns map[*watched]struct{}
	// judged are the verdicts on certificates; judgedBy is the snapshot that verified
	// them.
	judged   map[*x509.Certificate]verdict
	judgedBy *snapshot
}

// snapshot is the content of all files. It never changes once made.
type snapshot struct {
	raw  [][]byte
	own  *tls.Certificate
	cas  []*x509.Certificate
	pool *x509.CertPool
	// revoked has the revoked serial numbers, by their issuer's subject.
	revoked map[revocation]struct{}
	// oldest is when the first of the revocation lists ends; zero for none.
	oldest time.Time
}

type revocation struct{ issuer, serial string }

// Open reads the files. A server needs its own certificate and the CAs, a client only the
// CAs.
func Open(files Files, log *slog.Logger) (*Store, error) {
	s := &Store{
		files: files, log: cmp.Or(log, slog.New(slog.DiscardHandler)), now: time.Now,
		conns: make(map[*watched]struct{}), judged: make(map[*x509.Certificate]verdict),
	}
	raw, err := s.read()
	if err != nil {
		return nil, err
	}
	snap, err := parse(raw)
	if err != nil {
		return nil, err
	}
	s.current.Store(snap)
	return s, nil
}

// Run takes up changes of the files until ctx ends, and closes connections to peers with
// certificates that are no longer good. Bad files are logged, and the content read before
// stays in force.
func (s *Store) Run(ctx context.Context) { reload.Every(ctx, pollInterval, s.Look) }

// Look looks at the files once.
func (s *Store) Look() {
	changed, err := s.reload()
	fresh := s.failing.Fresh(err)
	switch {
	case err != nil:
		s.reloads.failed.Add(1)
		if fresh {
			s.log.Error("the certificates were not read again; what was read before stands", slog.Any("error", err))
		}
	case changed:
		s.reloads.done.Add(1)
		s.log.Info("certificates were read again", slog.Time("not_after", s.expiry()))
	}
	s.sweep()
}

func (s *Store) reload() (changed bool, err error) {
	raw, err := s.read()
	if err != nil {
		return false, err
	}
	if slices.EqualFunc(raw, s.current.Load().raw, bytes.Equal) {
		return false, nil
	}
	snap, err := parse(raw)
	if err != nil {
		return false, err
	}
	s.current.Store(snap)
	return true, nil
}

// read returns the content of the files: certificate, key, CAs and lists.
func (s *Store) read() ([][]byte, error) {
	raw := make([][]byte, 4)
	for i, f := range []struct{ field, what, path string }{
		{"cert", "certificate", s.files.Cert},
		{"key", "key", s.files.Key},
		{"ca", "CA certificates", s.files.CA},
		{"crl", "revocation lists", s.files.CRL},
	} {
		if f.path == "" {
			continue
		}
		b, err := reload.Read(f.path, maxFile)
		if err != nil {
			return nil, fmt.Errorf("%s: reading the %s: %w", f.field, f.what, err)
		}
		raw[i] = b
	}
	return raw, nil
}

// parse makes a snapshot of the content of the files.
func parse(raw [][]byte) (*snapshot, error) {
	snap := &snapshot{raw: raw, pool: x509.NewCertPool(), revoked: make(map[revocation]struct{})}
	if (raw[0] == nil) != (raw[1] == nil) {
		return nil, errors.New("cert: a certificate needs its key, and a key its certificate")
	}
	if raw[0] != nil {
		own, err := tls.X509KeyPair(raw[0], raw[1])
		if err != nil {
			return nil, fmt.Errorf("cert: the certificate and its key: %w", err)
		}
		snap.own = &own
	}
	var err error
	if snap.cas, err = certificates(raw[2]); err != nil {
		return nil, fmt.Errorf("ca: the CA certificates: %w", err)
	}
	if len(snap.cas) == 0 {
		return nil, errors.New("ca: the CA certificates: there are none")
	}
	for _, c := range snap.cas {
		if !c.IsCA {
			return nil, fmt.Errorf("ca: the CA certificates: %q is none of a CA", c.Subject)
		}
		snap.pool.AddCert(c)
	}
	if err := snap.revoke(raw[3]); err != nil {
		return nil, fmt.Errorf("crl: the revocation lists: %w", err)
	}
	return snap, nil
}

// certificates reads all certificates in PEM.
func certificates(b []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for block, rest := pem.Decode(b); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// revoke takes revocation lists in. A list that none of the CAs has signed is an error.
func (s *snapshot) revoke(b []byte) error {
	found := false
	for block, rest := pem.Decode(b); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "X509 CRL" {
			continue
		}
		found = true
		list, err := x509.ParseRevocationList(block.Bytes)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(s.cas, func(c *x509.Certificate) bool { return list.CheckSignatureFrom(c) == nil }) {
			return fmt.Errorf("none of the CAs has signed that of %q", list.Issuer)
		}
		for _, e := range list.RevokedCertificateEntries {
			s.revoked[revocation{string(list.RawIssuer), string(e.SerialNumber.Bytes())}] = struct{}{}
		}
		if !list.NextUpdate.IsZero() && (s.oldest.IsZero() || list.NextUpdate.Before(s.oldest)) {
			s.oldest = list.NextUpdate
		}
	}
	if len(b) > 0 && !found {
		return errors.New("there are none")
	}
	return nil
}

// Own returns the holder of the own certificate; false without an own certificate.
func (s *Store) Own() (Identity, bool) {
	own := s.current.Load().own
	if own == nil {
		return Identity{}, false
	}
	id, err := IdentityOf(own.Leaf)
	return id, err == nil
}

// expiry returns when the own certificate ends; zero without an own certificate.
func (s *Store) expiry() time.Time {
	if own := s.current.Load().own; own != nil {
		return own.Leaf.NotAfter
	}
	return time.Time{}
}
