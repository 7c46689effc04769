// Package credtest makes the credentials of a whole cluster for tests: certificates of
// two CAs, tokens, JWTs and the access file that knows them. It can be used in tests
// only.
package credtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/samya-db/samya/internal/devca"
	"github.com/samya-db/samya/internal/tlsconf"
)

// The issuer and audience of JWTs.
const (
	Issuer   = "https://issuer.example"
	Audience = "samya"
)

// Set are the credentials of a cluster. Callers are viewer, client (of acme), other (a
// client of zeta), operator, tenant (an operator of acme) and admin. Each caller has a
// token and a certificate with its name.
type Set struct {
	tb testing.TB
	// Dir has all files.
	Dir string
	// CA is the cluster's CA; Foreign is another.
	CA, Foreign *devca.CA
	keys        []jose.JSONWebKey
}

// callers are the callers of the access file, without their credentials.
var callers = []struct{ name, role, prefixes string }{
	{"viewer", "viewer", ""},
	{"client", "client", "[acme]"},
	{"other", "client", "[zeta]"},
	{"operator", "operator", ""},
	{"tenant", "operator", "[acme]"},
	{"admin", "admin", ""},
	{"proxy", "proxy", "[ratelimit/acme]"},
}

// New makes credentials in a temporary directory of the test.
func New(tb testing.TB) *Set {
	tb.Helper()
	s := &Set{tb: tb, Dir: tb.TempDir()}
	var err error
	if s.CA, err = devca.Create(s.Dir, "test", time.Hour); err != nil {
		tb.Fatal(err)
	}
	if s.Foreign, err = devca.Create(filepath.Join(s.Dir, "foreign"), "test", time.Hour); err != nil {
		tb.Fatal(err)
	}
	s.AddKey("first")
	var lines strings.Builder
	lines.WriteString("callers:\n")
	for _, c := range callers {
		fmt.Fprintf(&lines, "  - {name: %s, role: %s, certificate: %s, token_sha256: %x", c.name, c.role, c.name, sha256.Sum256([]byte(Token(c.name))))
		if c.prefixes != "" {
			fmt.Fprintf(&lines, ", prefixes: %s", c.prefixes)
		}
		lines.WriteString("}\n")
	}
	fmt.Fprintf(&lines, "issuers:\n  - {issuer: %q, audience: %s, keys: jwks.json, most_role: operator}\n", Issuer, Audience)
	s.write("access.yaml", lines.String())
	return s
}

// AccessFile returns the path of the access file, which knows all callers.
func (s *Set) AccessFile() string { return filepath.Join(s.Dir, "access.yaml") }

// KeyFile returns the path of the issuer's JWK set.
func (s *Set) KeyFile() string { return filepath.Join(s.Dir, "jwks.json") }

func (s *Set) write(name, text string) {
	s.tb.Helper()
	if err := os.WriteFile(filepath.Join(s.Dir, name), []byte(text), 0o600); err != nil {
		s.tb.Fatal(err)
	}
}

// Token returns the bearer token of a caller.
func Token(caller string) string { return "the-token-of-" + caller }

// AddKey gives the issuer a further key to sign with; id is its key id.
func (s *Set) AddKey(id string) {
	s.tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.tb.Fatal(err)
	}
	s.keys = append(s.keys, jose.JSONWebKey{Key: key, KeyID: id, Algorithm: string(jose.ES256)})
	s.publish()
}

// WithdrawKey takes the issuer's oldest key back.
func (s *Set) WithdrawKey() {
	s.tb.Helper()
	s.keys = s.keys[1:]
	s.publish()
}

// publish writes the public keys.
func (s *Set) publish() {
	s.tb.Helper()
	var set jose.JSONWebKeySet
	for i := range s.keys {
		set.Keys = append(set.Keys, s.keys[i].Public())
	}
	b, err := json.Marshal(set)
	if err != nil {
		s.tb.Fatal(err)
	}
	s.write("jwks.json", string(b))
}

// JWT signs claims with the issuer's oldest key. Missing claims are filled in for a
// client of acme, good for an hour.
func (s *Set) JWT(claims map[string]any) string {
	s.tb.Helper()
	return s.Sign(s.keys[0], claims)
}

// Sign signs claims with a key, filled in like the claims of JWT.
func (s *Set) Sign(key jose.JSONWebKey, claims map[string]any) string {
	s.tb.Helper()
	all := map[string]any{
		"iss": Issuer, "aud": Audience, "sub": "worker", "exp": time.Now().Add(time.Hour).Unix(),
		"samya_role": "client", "samya_prefixes": []string{"acme"},
	}
	for k, v := range claims {
		if all[k] = v; v == nil {
			delete(all, k)
		}
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(key.Algorithm), Key: key}, nil)
	if err != nil {
		s.tb.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(all).Serialize()
	if err != nil {
		s.tb.Fatal(err)
	}
	return token
}

// Issue makes a certificate of the cluster's CA, good for life.
func (s *Set) Issue(kind tlsconf.Kind, name string, life time.Duration) tlsconf.Files {
	s.tb.Helper()
	return s.issue(s.CA, kind, name, life)
}

// IssueForeign makes a certificate of the other CA. Its holder believes the cluster's CA.
func (s *Set) IssueForeign(kind tlsconf.Kind, name string) tlsconf.Files {
	s.tb.Helper()
	return s.issue(s.Foreign, kind, name, time.Hour)
}

func (s *Set) issue(ca *devca.CA, kind tlsconf.Kind, name string, life time.Duration) tlsconf.Files {
	s.tb.Helper()
	cert, key, err := ca.Issue(tlsconf.Identity{Kind: kind, Name: name}, []string{"127.0.0.1", "localhost"}, life)
	if err != nil {
		s.tb.Fatal(err)
	}
	f := s.Believing()
	f.Cert, f.Key = cert, key
	return f
}

// Believing returns the files of a process that believes the cluster's CA and shows no
// certificate.
func (s *Set) Believing() tlsconf.Files {
	return tlsconf.Files{CA: filepath.Join(s.Dir, devca.CertFile), CRL: filepath.Join(s.Dir, devca.CRLFile)}
}

// Revoke revokes a certificate.
func (s *Set) Revoke(f tlsconf.Files) {
	s.tb.Helper()
	b, err := os.ReadFile(f.Cert)
	if err != nil {
		s.tb.Fatal(err)
	}
	if err := s.CA.Revoke(b); err != nil {
		s.tb.Fatal(err)
	}
}

// Open reads files.
func (s *Set) Open(f tlsconf.Files) *tlsconf.Store {
	s.tb.Helper()
	store, err := tlsconf.Open(f, nil)
	if err != nil {
		s.tb.Fatal(err)
	}
	return store
}
