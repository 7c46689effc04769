package main

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/membership"
	"github.com/samya-db/samya/internal/tlsconf"
)

// TestCertsCommand: issued certificates can be used as they are, can be revoked, and are
// not overwritten.
func TestCertsCommand(t *testing.T) {
	s := newShell(t)
	dir := filepath.Join(t.TempDir(), "certs")
	s.expect("certs site us --dir "+dir, exitFailed, "samya: read the certificate authority: open "+dir+"/ca.pem: no such file or directory\n"+
		"  make one with: samya certs ca --dir "+dir+"\n")
	s.expect("certs ca --dir "+dir, exitOK, dir+"/ca-key.pem signs; "+dir+"/ca.pem is what everybody trusts\n")
	s.expect("certs site us --host 10.0.0.1,us.example --dir "+dir, exitOK, dir+"/site-us.pem\n"+dir+"/site-us-key.pem\n")
	s.expect("certs appmgr am-us --dir "+dir, exitOK, dir+"/appmgr-am-us.pem\n"+dir+"/appmgr-am-us-key.pem\n")
	s.expect("certs client billing --dir "+dir, exitOK, dir+"/client-billing.pem\n"+dir+"/client-billing-key.pem\n")
	for _, line := range []string{"certs ca", "certs client billing"} {
		if code, _, stderr := s.run(line + " --dir " + dir); code != exitFailed || !strings.Contains(stderr, "nothing is overwritten") {
			t.Errorf("%s again: %d: %s", line, code, stderr)
		}
	}
	s.expect("certs client billing --replace --dir "+dir, exitOK, dir+"/client-billing.pem\n"+dir+"/client-billing-key.pem\n")
	if code, _, stderr := s.run("certs site US --dir " + dir); code != exitUsage {
		t.Errorf("a bad name: %d: %s", code, stderr)
	}
	files := func(base string) tlsconf.Files {
		return tlsconf.Files{
			Cert: filepath.Join(dir, base+".pem"), Key: filepath.Join(dir, base+"-key.pem"),
			CA: filepath.Join(dir, "ca.pem"), CRL: filepath.Join(dir, "crl.pem"),
		}
	}
	for _, base := range []string{"site-us", "appmgr-am-us", "client-billing"} {
		if _, err := tlsconf.Open(files(base), nil); err != nil {
			t.Errorf("%s: %v", base, err)
		}
	}
	s.expect("certs revoke "+dir+"/site-us.pem --dir "+dir, exitOK, dir+"/crl.pem\n")
	store, err := tlsconf.Open(files("site-us"), nil)
	if err != nil {
		t.Fatal(err)
	}
	own, err := store.Server().GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Good([]*x509.Certificate{own.Leaf}); !errors.Is(err, tlsconf.ErrRevoked) {
		t.Errorf("revoked: %v", err)
	}
}

// TestTokenCommand: the printed hash is the hash of the token without its line end.
func TestTokenCommand(t *testing.T) {
	s := newShell(t)
	out := filepath.Join(t.TempDir(), "token")
	code, stdout, stderr := s.run("certs token --out " + out)
	b, err := os.ReadFile(out)
	if code != exitOK || err != nil {
		t.Fatalf("%d: %s, %v", code, stderr, err)
	}
	sum := sha256.Sum256([]byte(strings.TrimSuffix(string(b), "\n")))
	if stdout != hex.EncodeToString(sum[:])+"\n" || len(b) != 44 {
		t.Errorf("%q of %q", stdout, b)
	}
	if code, _, _ := s.run("certs token --out " + out); code != exitFailed {
		t.Error("a token is overwritten")
	}
	code, key, _ := s.run("certs gossip-key")
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	if keys, err := membership.ReadKeys(path); code != exitOK || err != nil || len(keys) != 1 || len(keys[0]) != 32 {
		t.Errorf("gossip-key prints %q: %v", key, err)
	}
}
