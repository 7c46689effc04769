package access

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/samya-db/samya/internal/methods"
)

const (
	// maxToken bounds a bearer token, in bytes.
	maxToken = 8 << 10
	// leeway bounds the difference of an issuer's clock.
	leeway = 10 * time.Second
	// minRSA is the shortest RSA key, in bits.
	minRSA = 2048
)

// algorithms are the accepted algorithms of JWTs: no algorithm that shares a secret, and
// not "none".
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// issuer is a signer of JWTs.
type issuer struct {
	name, audience           string
	keys                     []jose.JSONWebKey
	most                     methods.Role
	scope                    Scope
	roleClaim, prefixesClaim string
}

func newIssuer(name, audience, most string, prefixes []string, roleClaim, prefixesClaim string, keys []byte) (*issuer, error) {
	is := &issuer{name: name, audience: audience, most: methods.Client, roleClaim: roleClaim, prefixesClaim: prefixesClaim}
	if name == "" || audience == "" {
		return nil, errors.New("issuer and audience must be given")
	}
	is.roleClaim = cmp.Or(is.roleClaim, "samya_role")
	is.prefixesClaim = cmp.Or(is.prefixesClaim, "samya_prefixes")
	var err error
	if most != "" {
		if is.most, err = parseRole(most); err != nil {
			return nil, fmt.Errorf("most_role: %w", err)
		}
	}
	if len(prefixes) > 0 {
		if is.scope, err = newScope(prefixes); err != nil {
			return nil, err
		}
	}
	if is.keys, err = parseKeys(keys); err != nil {
		return nil, fmt.Errorf("keys of %s: %w", name, err)
	}
	return is, nil
}

// parseKeys reads a JWK set, or public keys and certificates in PEM. An issuer without
// keys is valid: then none of its tokens is good.
func parseKeys(b []byte) ([]jose.JSONWebKey, error) {
	var keys []jose.JSONWebKey
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) {
		var set jose.JSONWebKeySet
		if err := json.Unmarshal(b, &set); err != nil {
			return nil, fmt.Errorf("no JWK set: %w", err)
		}
		keys = set.Keys
	} else {
		for block, rest := pem.Decode(b); block != nil; block, rest = pem.Decode(rest) {
			key, err := x509.ParsePKIXPublicKey(block.Bytes)
			if err != nil {
				cert, certErr := x509.ParseCertificate(block.Bytes)
				if certErr != nil {
					return nil, fmt.Errorf("a PEM block of %.32q that is no public key: %w", block.Type, err)
				}
				key = cert.PublicKey
			}
			keys = append(keys, jose.JSONWebKey{Key: key})
		}
		if len(keys) == 0 && len(bytes.TrimSpace(b)) > 0 {
			return nil, errors.New("neither a JWK set nor PEM")
		}
	}
	for i := range keys {
		switch k := keys[i].Key.(type) {
		case *ecdsa.PublicKey, ed25519.PublicKey:
		case *rsa.PublicKey:
			if n := k.N.BitLen(); n < minRSA {
				return nil, fmt.Errorf("an RSA key of %d bits, at least %d", n, minRSA)
			}
		default:
			return nil, fmt.Errorf("a key of kind %T, must be a public key", k)
		}
	}
	return keys, nil
}

// looksLikeJWT reports whether a token has the three parts of a JWT.
func looksLikeJWT(token string) bool { return strings.Count(token, ".") == 2 }

// canonical reports whether a JWT has its only spelling: no white space, which decoders
// strip, and a signature in canonical base64url (RFC 4648, section 3.5), as decoders ignore
// up to four bits of its last letter. Without this check a JWT would have any number of
// spellings, each with its own place among verified tokens.
func canonical(token string) bool {
	if strings.ContainsFunc(token, unicode.IsSpace) {
		return false
	}
	signature := token[strings.LastIndexByte(token, '.')+1:]
	b, err := base64.RawURLEncoding.DecodeString(signature)
	return err == nil && base64.RawURLEncoding.EncodeToString(b) == signature
}

// callerOf verifies a JWT and returns the caller that it names.
func (p *policy) callerOf(token string, now time.Time) (*principal, error) {
	if !canonical(token) {
		return nil, errors.New("it has white space, or its signature is not canonical base64url")
	}
	parsed, err := jwt.ParseSigned(token, algorithms)
	if err != nil {
		return nil, fmt.Errorf("no JWT that is taken: %w", err)
	}
	var unsafe jwt.Claims
	if err := parsed.UnsafeClaimsWithoutVerification(&unsafe); err != nil {
		return nil, fmt.Errorf("its claims: %w", err)
	}
	is := p.issuers[unsafe.Issuer]
	if is == nil {
		return nil, errors.New("its issuer is none that is known")
	}
	var claims jwt.Claims
	var all map[string]any
	if err := is.verify(parsed, &claims, &all); err != nil {
		return nil, err
	}
	if claims.Expiry == nil || claims.Subject == "" {
		return nil, errors.New("it has no exp or no sub")
	}
	if err := claims.ValidateWithLeeway(jwt.Expected{
		Issuer: is.name, AnyAudience: jwt.Audience{is.audience}, Time: now,
	}, leeway); err != nil {
		return nil, err
	}
	return is.caller(claims.Subject, all)
}

// verify checks a JWT against the issuer's keys with its key id. Keys without an id, and
// all keys if the JWT has no key id, are tried too.
func (is *issuer) verify(token *jwt.JSONWebToken, into ...any) error {
	kid := ""
	if len(token.Headers) > 0 {
		kid = token.Headers[0].KeyID
	}
	for i := range is.keys {
		k := &is.keys[i]
		if kid != "" && k.KeyID != "" && k.KeyID != kid {
			continue
		}
		if k.Use != "" && k.Use != "sig" {
			continue
		}
		if token.Claims(k.Key, into...) == nil {
			return nil
		}
	}
	return errors.New("none of its issuer's keys has signed it")
}

// caller makes a principal from the role and the prefixes in claims.
func (is *issuer) caller(subject string, claims map[string]any) (*principal, error) {
	role, _ := claims[is.roleClaim].(string)
	var prefixes []string
	switch v := claims[is.prefixesClaim].(type) {
	case nil:
	case string:
		prefixes = strings.Fields(v)
	case []any:
		for _, e := range v {
			s, ok := e.(string)
			if !ok {
				return nil, fmt.Errorf("claim %s must be a list of texts", is.prefixesClaim)
			}
			prefixes = append(prefixes, s)
		}
	default:
		return nil, fmt.Errorf("claim %s must be a list of texts", is.prefixesClaim)
	}
	c := &principal{Name: is.name + "#" + subject}
	var err error
	if c.Role, c.Scope, err = grant(role, prefixes); err != nil {
		return nil, fmt.Errorf("its claims: %w", err)
	}
	c.Role = c.Role.AtMost(is.most)
	if !is.scope.All() {
		if c.Scope.All() {
			c.Scope = is.scope
		}
		for _, p := range c.Scope {
			if !is.scope.includes(p) {
				return nil, fmt.Errorf("its prefix %.64q is none of the issuer's", p)
			}
		}
	}
	return c, nil
}

// includes reports whether the scope has all entities that a prefix covers.
func (s Scope) includes(prefix string) bool {
	if strings.HasSuffix(prefix, "/") {
		return s.coversAll(prefix)
	}
	return s.Covers(prefix) && s.coversAll(prefix+"/")
}
