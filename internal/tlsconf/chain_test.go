package tlsconf

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// signer is a CA, or a certificate between a CA and others.
type signer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// sign makes a certificate that ends after a time; by is nil for a CA. Each of more
// changes the template.
func sign(
	t *testing.T, by *signer, name string, serial int64, ca bool, ends time.Duration, more ...func(*x509.Certificate),
) *signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: epoch.Add(-time.Hour), NotAfter: epoch.Add(ends),
		IsCA: ca, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	if ca {
		template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	}
	for _, change := range more {
		change(template)
	}
	parent, secret := template, key
	if by != nil {
		parent, secret = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, secret)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &signer{cert, key}
}

// list makes a revocation list.
func (s *signer) list(t *testing.T, serials ...int64) []byte {
	t.Helper()
	l := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: epoch, NextUpdate: epoch.Add(24 * time.Hour)}
	for _, n := range serials {
		l.RevokedCertificateEntries = append(l.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: big.NewInt(n), RevocationTime: epoch})
	}
	der, err := x509.CreateRevocationList(rand.Reader, l, s.cert, s.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})
}

// trusting returns a store that trusts CAs, with revocation lists, at a time set by the
// test. write writes other files.
func trusting(t *testing.T, now *time.Time, lists []byte, cas ...*signer) (s *Store, write func(lists []byte, cas ...*signer)) {
	t.Helper()
	dir := t.TempDir()
	files := Files{CA: filepath.Join(dir, "ca.pem"), CRL: filepath.Join(dir, "crl.pem")}
	write = func(lists []byte, cas ...*signer) {
		var b []byte
		for _, ca := range cas {
			b = append(b, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw})...)
		}
		for path, text := range map[string][]byte{files.CA: b, files.CRL: lists} {
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(lists, cas...)
	s, err := Open(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.now = func() time.Time { return *now }
	return s, write
}

func chainOf(all ...*signer) []*x509.Certificate {
	var chain []*x509.Certificate
	for _, s := range all {
		chain = append(chain, s.cert)
	}
	return chain
}

// TestGoodWhileTimePasses: an accepted certificate is good until the first certificate of
// its chain ends: itself, the certificate between, or the CA. Clocks that step back make
// nothing good for longer.
func TestGoodWhileTimePasses(t *testing.T) {
	for name, ends := range map[string]struct{ leaf, between, ca time.Duration }{
		"the certificate ends": {10 * time.Minute, time.Hour, 2 * time.Hour},
		"what is between ends": {time.Hour, 10 * time.Minute, 2 * time.Hour},
		"the CA ends":          {time.Hour, 2 * time.Hour, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			ca := sign(t, nil, "ca", 1, true, ends.ca)
			between := sign(t, ca, "between", 2, true, ends.between)
			leaf := sign(t, between, "leaf", 3, false, ends.leaf)
			now := epoch
			s, _ := trusting(t, &now, ca.list(t), ca)
			chain := chainOf(leaf, between)
			for _, step := range []struct {
				at   time.Duration
				good bool
			}{{0, true}, {9 * time.Minute, true}, {5 * time.Minute, true}, {10 * time.Minute, true}, {10*time.Minute + time.Second, false}, {time.Hour, false}} {
				now = epoch.Add(step.at)
				if err := s.Good(chain); (err == nil) != step.good {
					t.Errorf("after %v: %v", step.at, err)
				}
			}
		})
	}
}

// TestGoodByAnotherChain: a certificate is good as long as any of its chains is good.
func TestGoodByAnotherChain(t *testing.T) {
	ca := sign(t, nil, "ca", 1, true, 24*time.Hour)
	short := sign(t, ca, "between", 2, true, 10*time.Minute)
	// The same name and key, signed again for longer.
	template := *short.cert
	template.SerialNumber, template.NotAfter = big.NewInt(5), epoch.Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, &template, ca.cert, &short.key.PublicKey, ca.key)
	if err != nil {
		t.Fatal(err)
	}
	longer, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	leaf := sign(t, short, "leaf", 3, false, 24*time.Hour)
	now := epoch
	s, write := trusting(t, &now, ca.list(t), ca)
	chain := append(chainOf(leaf, short), longer)
	for _, at := range []time.Duration{0, 30 * time.Minute} {
		now = epoch.Add(at)
		if err := s.Good(chain); err != nil {
			t.Errorf("after %v: %v", at, err)
		}
	}
	// The longer chain is revoked, and then the other chain ends.
	now = epoch
	write(ca.list(t, 5), ca)
	s.Look()
	if err := s.Good(chain); err != nil {
		t.Errorf("with one chain revoked: %v", err)
	}
	now = epoch.Add(30 * time.Minute)
	if err := s.Good(chain); err == nil {
		t.Error("with one chain revoked and the other at its end, it is good")
	}
}

// errUnknown stands for the error of a certificate of an unknown CA.
var errUnknown = errors.New("unknown authority")

// TestRevokedWhileOpen: an open connection is no longer good once any certificate of its
// chain is revoked, or once its CA is not trusted any more.
func TestRevokedWhileOpen(t *testing.T) {
	ca := sign(t, nil, "ca", 1, true, 24*time.Hour)
	between := sign(t, ca, "between", 2, true, 24*time.Hour)
	leaf := sign(t, between, "leaf", 3, false, 24*time.Hour)
	direct := sign(t, ca, "direct", 4, false, 24*time.Hour)
	other := sign(t, nil, "other", 9, true, 24*time.Hour)
	for name, tc := range map[string]struct {
		chain []*x509.Certificate
		list  []byte
		cas   []*signer
		want  error
	}{
		"nothing":                        {chainOf(leaf, between), ca.list(t), []*signer{ca}, nil},
		"a stranger":                     {chainOf(leaf, between), ca.list(t, 77), []*signer{ca}, nil},
		"the certificate":                {chainOf(direct), ca.list(t, 4), []*signer{ca}, ErrRevoked},
		"what is between":                {chainOf(leaf, between), ca.list(t, 2), []*signer{ca}, ErrRevoked},
		"the number, by another CA":      {chainOf(direct), other.list(t, 4), []*signer{ca, other}, nil},
		"the number between, by another": {chainOf(leaf, between), other.list(t, 2, 3), []*signer{ca, other}, nil},
		"the certificate, in two lists":  {chainOf(direct), append(ca.list(t, 77), ca.list(t, 4)...), []*signer{ca}, ErrRevoked},
		"the second list is of another":  {chainOf(direct), append(other.list(t, 77), ca.list(t, 4)...), []*signer{ca, other}, ErrRevoked},
		"the CA":                         {chainOf(direct), nil, []*signer{other}, errUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			now := epoch
			s, write := trusting(t, &now, ca.list(t), ca)
			if err := s.Good(tc.chain); err != nil {
				t.Fatal(err)
			}
			if tc.list == nil {
				tc.list = other.list(t)
			}
			write(tc.list, tc.cas...)
			s.Look()
			err := s.Good(tc.chain)
			if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
				err = errUnknown
			}
			if !errors.Is(err, tc.want) {
				t.Errorf("%v, want %v", err, tc.want)
			}
		})
	}
}
