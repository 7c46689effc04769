// Package devca is a certificate authority for development and small clusters. It is a
// directory with a CA, the certificates it has issued, and the list of certificates it
// has revoked. It never overwrites a key. Its files are all its protection: a reader of
// ca-key.pem can pose as anybody.
package devca

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/samya-db/samya/internal/tlsconf"
)

// The files of a directory, beside NAME.pem and NAME-key.pem for each certificate.
const (
	CertFile = "ca.pem"
	KeyFile  = "ca-key.pem"
	CRLFile  = "crl.pem"
)

// listTime is how long a revocation list is good.
const listTime = 365 * 24 * time.Hour

// early is how long before now certificates begin: clocks differ.
const early = 5 * time.Minute

// CA issues certificates.
type CA struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// Now returns the time.
	Now func() time.Time
	// Replace lets Issue replace an existing certificate and key.
	Replace bool
}

// Create makes a CA in a directory, which may exist and must have no CA. The CA is good
// for life.
func Create(dir, cluster string, life time.Duration) (*CA, error) {
	clock := time.Now
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	now := clock()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "samya CA " + cluster},
		NotBefore: now.Add(-early), NotAfter: now.Add(life),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("signing the CA: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	ca := &CA{dir: dir, cert: cert, key: key, Now: clock}
	if err := ca.write(KeyFile, CertFile, der, key); err != nil {
		return nil, err
	}
	return ca, ca.list(nil)
}

// Load reads a CA that Create made.
func Load(dir string) (*CA, error) {
	certPEM, err := os.ReadFile(filepath.Join(dir, CertFile))
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(filepath.Join(dir, KeyFile))
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(certPEM)
	keyBlock, _ := pem.Decode(keyPEM)
	if block == nil || keyBlock == nil {
		return nil, fmt.Errorf("%s: no CA in PEM", dir)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", CertFile, err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", KeyFile, err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s: a key of another kind", KeyFile)
	}
	return &CA{dir: dir, cert: cert, key: key, Now: time.Now}, nil
}

// Issue makes a certificate for id, good for hosts (names and IP addresses) and for life.
// It returns the paths of the certificate and its key.
func (ca *CA) Issue(id tlsconf.Identity, hosts []string, life time.Duration) (cert, key string, err error) {
	if err := id.Validate(); err != nil {
		return "", "", err
	}
	serial, err := newSerial()
	if err != nil {
		return "", "", err
	}
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	now := ca.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: id.Name},
		NotBefore: now.Add(-early), NotAfter: now.Add(life),
		KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	template.URIs = append(template.URIs, id.URI())
	if id.Kind != tlsconf.Client {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
			continue
		}
		template.DNSNames = append(template.DNSNames, h)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, &secret.PublicKey, ca.key)
	if err != nil {
		return "", "", fmt.Errorf("signing the certificate of %s: %w", id, err)
	}
	base := string(id.Kind) + "-" + strings.ReplaceAll(id.Name, "/", "_")
	if err := ca.write(base+"-key.pem", base+".pem", der, secret); err != nil {
		return "", "", err
	}
	return filepath.Join(ca.dir, base+".pem"), filepath.Join(ca.dir, base+"-key.pem"), nil
}

// Revoke puts a certificate, in PEM, into the revocation list.
func (ca *CA) Revoke(certPEM []byte) error {
	block, _ := pem.Decode(certPEM)
	if block == nil || block.Type != "CERTIFICATE" {
		return errors.New("no certificate in PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return err
	}
	if !bytes.Equal(cert.RawIssuer, ca.cert.RawSubject) || cert.CheckSignatureFrom(ca.cert) != nil {
		return errors.New("this CA has not issued the certificate")
	}
	old, err := ca.revoked()
	if err != nil {
		return err
	}
	for _, e := range old {
		if e.SerialNumber.Cmp(cert.SerialNumber) == 0 {
			return nil
		}
	}
	return ca.list(append(old, x509.RevocationListEntry{SerialNumber: cert.SerialNumber, RevocationTime: ca.Now()}))
}

// revoked returns the entries of the revocation list.
func (ca *CA) revoked() ([]x509.RevocationListEntry, error) {
	b, err := os.ReadFile(filepath.Join(ca.dir, CRLFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return nil, fmt.Errorf("%s: no list in PEM", CRLFile)
	}
	list, err := x509.ParseRevocationList(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", CRLFile, err)
	}
	return list.RevokedCertificateEntries, nil
}

// list writes the revocation list and replaces the former list.
func (ca *CA) list(entries []x509.RevocationListEntry) error {
	now := ca.Now()
	der, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{
		Number: big.NewInt(now.UnixNano()), ThisUpdate: now.Add(-early), NextUpdate: now.Add(listTime),
		RevokedCertificateEntries: entries,
	}, ca.cert, ca.key)
	if err != nil {
		return fmt.Errorf("signing the revocation list: %w", err)
	}
	return replace(filepath.Join(ca.dir, CRLFile), 0o644, pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der}))
}

// write writes a key and its certificate.
func (ca *CA) write(keyName, certName string, der []byte, key *ecdsa.PrivateKey) error {
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	put := writeNew
	if ca.Replace {
		put = replace
	}
	if err := put(filepath.Join(ca.dir, keyName), 0o600, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})); err != nil {
		return err
	}
	return put(filepath.Join(ca.dir, certName), 0o644, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// writeNew writes a file that must not exist.
func writeNew(path string, mode os.FileMode, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

// replace writes a file in place of another, so that a process that polls it sees either
// the old file or the new.
func replace(path string, mode os.FileMode, b []byte) error {
	next := path + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := writeNew(next, mode, b); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// newSerial returns a serial number of 127 random bits.
func newSerial() (*big.Int, error) {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	return n.Add(n, big.NewInt(1)), nil
}
