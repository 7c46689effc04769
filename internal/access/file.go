package access

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/samya-db/samya/internal/methods"
	"github.com/samya-db/samya/internal/reload"
	"github.com/samya-db/samya/internal/tlsconf"
)

// maxCallers bounds the callers of an access file.
const maxCallers = 100_000

// file is the content of an access file, in YAML.
type file struct {
	Callers []struct {
		Name string `yaml:"name"`
		Role string `yaml:"role"`
		// Prefixes are the entities: required for clients and proxies, and all entities by
		// default for other roles.
		Prefixes []string `yaml:"prefixes"`
		// Tokens are the SHA-256 of the caller's bearer tokens, in hexadecimal: several
		// while they are exchanged.
		Tokens texts `yaml:"token_sha256"`
		// Certificate is the name in the caller's client certificate.
		Certificate string `yaml:"certificate"`
	} `yaml:"callers"`
	Issuers []struct {
		Issuer   string `yaml:"issuer"`
		Audience string `yaml:"audience"`
		// Keys is a file with a JWK set, or with public keys in PEM.
		Keys string `yaml:"keys"`
		// MostRole is the highest role that a token of this issuer may have.
		MostRole string `yaml:"most_role"`
		// Prefixes are all entities that its tokens may be for.
		Prefixes []string `yaml:"prefixes"`
		// RoleClaim and PrefixesClaim name the claims.
		RoleClaim     string `yaml:"role_claim"`
		PrefixesClaim string `yaml:"prefixes_claim"`
	} `yaml:"issuers"`
}

// texts is a text or a list of texts.
type texts []string

// UnmarshalYAML implements yaml.Unmarshaler.
func (t *texts) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*t = texts{n.Value}
		return nil
	}
	return n.Decode((*[]string)(t))
}

// policy is the meaning of an access file. It never changes once made.
type policy struct {
	raw     [][]byte
	tokens  map[[sha256.Size]byte]*principal
	certs   map[string]*principal
	issuers map[string]*issuer
}

// readPolicy reads an access file and the key files that it names, relative to it. If no
// file has changed, it returns the policy before.
func readPolicy(path string, before *policy) (*policy, error) {
	b, err := reload.Read(path, maxFile)
	if err != nil {
		return nil, fmt.Errorf("reading the access file: %w", err)
	}
	f, err := parseFile(b)
	if err != nil {
		return nil, fmt.Errorf("access file %s: %w", path, err)
	}
	raw := [][]byte{b}
	for i := range f.Issuers {
		keys := f.Issuers[i].Keys
		if !filepath.IsAbs(keys) {
			keys = filepath.Join(filepath.Dir(path), keys)
		}
		k, err := reload.Read(keys, maxFile)
		if err != nil {
			return nil, fmt.Errorf("access file %s: issuers[%d].keys: %w", path, i, err)
		}
		raw = append(raw, k)
	}
	if before != nil && slices.EqualFunc(raw, before.raw, bytes.Equal) {
		return before, nil
	}
	p, err := f.policy(raw[1:])
	if err != nil {
		return nil, fmt.Errorf("access file %s: %w", path, err)
	}
	p.raw = raw
	return p, nil
}

// parseFile reads YAML. It fails for an unknown key.
func parseFile(b []byte) (*file, error) {
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	f := new(file)
	if err := d.Decode(f); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one document")
	}
	if n := len(f.Callers); n > maxCallers {
		return nil, fmt.Errorf("%d callers, at most %d", n, maxCallers)
	}
	return f, nil
}

// policy checks the file and makes a policy of it, with the keys of its issuers.
func (f *file) policy(keys [][]byte) (*policy, error) {
	p := &policy{tokens: make(map[[sha256.Size]byte]*principal), certs: make(map[string]*principal), issuers: make(map[string]*issuer)}
	names := make(map[string]bool)
	for i := range f.Callers {
		in := &f.Callers[i]
		if err := (tlsconf.Identity{Kind: tlsconf.Client, Name: in.Name}).Validate(); err != nil {
			return nil, fmt.Errorf("callers[%d]: %w", i, err)
		}
		bad := func(format string, args ...any) error {
			return fmt.Errorf("callers[%d] (%s): %s", i, in.Name, fmt.Sprintf(format, args...))
		}
		if names[in.Name] {
			return nil, bad("the name stands there twice")
		}
		names[in.Name] = true
		c := &principal{Name: in.Name}
		var err error
		if c.Role, c.Scope, err = grant(in.Role, in.Prefixes); err != nil {
			return nil, bad("%v", err)
		}
		if len(in.Tokens) == 0 && in.Certificate == "" {
			return nil, bad("neither token_sha256 nor certificate: nobody could be it")
		}
		for _, t := range in.Tokens {
			var sum [sha256.Size]byte
			if n, err := hex.Decode(sum[:], []byte(t)); err != nil || n != len(sum) || len(t) != 2*len(sum) {
				return nil, bad("token_sha256 must be 64 hexadecimal digits, the SHA-256 of a token")
			}
			if p.tokens[sum] != nil {
				return nil, bad("its token is also that of %s", p.tokens[sum].Name)
			}
			p.tokens[sum] = c
		}
		if in.Certificate != "" {
			if p.certs[in.Certificate] != nil {
				return nil, bad("its certificate is also that of %s", p.certs[in.Certificate].Name)
			}
			p.certs[in.Certificate] = c
		}
	}
	for i := range f.Issuers {
		in := &f.Issuers[i]
		is, err := newIssuer(in.Issuer, in.Audience, in.MostRole, in.Prefixes, in.RoleClaim, in.PrefixesClaim, keys[i])
		if err != nil {
			return nil, fmt.Errorf("issuers[%d]: %w", i, err)
		}
		if p.issuers[in.Issuer] != nil {
			return nil, fmt.Errorf("issuers[%d]: %s stands there twice", i, in.Issuer)
		}
		p.issuers[in.Issuer] = is
	}
	return p, nil
}

// grant reads a role and its prefixes.
func grant(role string, prefixes []string) (methods.Role, Scope, error) {
	r, err := parseRole(role)
	if err != nil {
		return methods.Nobody, nil, err
	}
	if len(prefixes) == 0 {
		if r == methods.Client || r == methods.Proxy {
			return methods.Nobody, nil, fmt.Errorf("a %s needs prefixes; %q for all entities", r, everything)
		}
		return r, nil, nil
	}
	scope, err := newScope(prefixes)
	if err != nil {
		return methods.Nobody, nil, err
	}
	if r == methods.Admin && !scope.All() {
		return methods.Nobody, nil, errors.New("an admin has no prefixes")
	}
	return r, scope, nil
}
