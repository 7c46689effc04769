package devca_test

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/devca"
	"github.com/samya-db/samya/internal/tlsconf"
)

func read(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(b)
	if block == nil {
		t.Fatalf("%s: no PEM", path)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestIssue: an issued certificate names its holder, is no CA, and is good for the uses
// of its holder.
func TestIssue(t *testing.T) {
	dir := t.TempDir()
	if _, err := devca.Create(dir, "prod", time.Hour); err != nil {
		t.Fatal(err)
	}
	ca, err := devca.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	for id, serves := range map[tlsconf.Identity]bool{
		{Kind: tlsconf.Site, Name: "us"}: true, {Kind: tlsconf.AppManager, Name: "am"}: true, {Kind: tlsconf.Client, Name: "billing/eu"}: false,
	} {
		cert, key, err := ca.Issue(id, []string{"127.0.0.1", "us.example"}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		c := read(t, cert)
		got, err := tlsconf.IdentityOf(c)
		if err != nil || got != id || c.IsCA || len(c.IPAddresses) != 1 || len(c.DNSNames) != 1 {
			t.Errorf("%s: %v, %v: %+v", id, got, err, c)
		}
		_, err = c.Verify(x509.VerifyOptions{Roots: pool(read(t, filepath.Join(dir, devca.CertFile))), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
		if (err == nil) != serves {
			t.Errorf("%s serves: %v, want %v", id, err, serves)
		}
		info, err := os.Stat(key)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", key, info, err)
		}
		if _, _, err := ca.Issue(id, nil, time.Minute); !errors.Is(err, os.ErrExist) {
			t.Errorf("a second certificate of %s: %v", id, err)
		}
		before := c.SerialNumber
		ca.Replace = true
		if _, _, err := ca.Issue(id, nil, time.Minute); err != nil || read(t, cert).SerialNumber.Cmp(before) == 0 {
			t.Errorf("a new certificate of %s: %v", id, err)
		}
		ca.Replace = false
	}
	if _, err := devca.Create(dir, "prod", time.Hour); !errors.Is(err, os.ErrExist) {
		t.Errorf("a second CA: %v", err)
	}
	if _, _, err := ca.Issue(tlsconf.Identity{Kind: tlsconf.Site, Name: "US"}, nil, time.Minute); err == nil {
		t.Error("a site with a bad name")
	}
}

func pool(c *x509.Certificate) *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(c)
	return p
}

// TestRevokeOnlyOwn: a list has each revoked certificate once, and nothing of another CA.
func TestRevokeOnlyOwn(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	ca, err := devca.Create(dir, "prod", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := devca.Create(other, "prod", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	id := tlsconf.Identity{Kind: tlsconf.Client, Name: "x"}
	for _, c := range []*devca.CA{ca, foreign} {
		if _, _, err := c.Issue(id, nil, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	own, _ := os.ReadFile(filepath.Join(dir, "client-x.pem"))
	theirs, _ := os.ReadFile(filepath.Join(other, "client-x.pem"))
	for range 2 {
		if err := ca.Revoke(own); err != nil {
			t.Fatal(err)
		}
	}
	if err := ca.Revoke(theirs); err == nil {
		t.Error("another CA's certificate is revoked")
	}
	if err := ca.Revoke([]byte("x")); err == nil {
		t.Error("nothing is revoked")
	}
	b, err := os.ReadFile(filepath.Join(dir, devca.CRLFile))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(b)
	list, err := x509.ParseRevocationList(block.Bytes)
	if err != nil || len(list.RevokedCertificateEntries) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}
