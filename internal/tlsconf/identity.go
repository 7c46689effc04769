package tlsconf

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/samya-db/samya/internal/name"
)

// Kind is the kind of a certificate's holder.
type Kind string

// The kinds.
const (
	// Site is a site of the cluster.
	Site Kind = "site"
	// AppManager is an app manager, or a group of app managers with a common certificate.
	AppManager Kind = "appmgr"
	// Client is a caller of the API.
	Client Kind = "client"
)

// scheme is the scheme of URIs that name holders.
const scheme = "samya"

// Identity is the holder of a certificate.
type Identity struct {
	Kind Kind
	// Name is the name of a site, an app manager or a caller.
	Name string
}

// String returns kind and name with a slash between.
func (i Identity) String() string { return string(i.Kind) + "/" + i.Name }

// URI returns the URI that names the holder in its certificate.
func (i Identity) URI() *url.URL {
	return &url.URL{Scheme: scheme, Host: string(i.Kind), Path: "/" + i.Name}
}

// Validate checks the name. The name of a site or app manager is 1 to 63 lower-case
// letters, digits and '-'. The name of a caller has the characters of an entity's name.
func (i Identity) Validate() error {
	switch i.Kind {
	case Site, AppManager:
		return name.Site("name", i.Name)
	case Client:
		return name.Entity("name", i.Name)
	}
	return &name.Error{Field: "kind", Problem: "must be site, appmgr or client"}
}

// ErrIdentity is in the chain of every error of a certificate that names no holder, or
// another holder than the called one.
var ErrIdentity = errors.New("wrong identity")

// IdentityOf returns the holder that a certificate names. It verifies nothing: the
// certificate must have been verified.
func IdentityOf(c *x509.Certificate) (Identity, error) {
	var found []Identity
	for _, u := range c.URIs {
		if u.Scheme != scheme {
			continue
		}
		id := Identity{Kind: Kind(u.Host), Name: strings.TrimPrefix(u.Path, "/")}
		if id.URI().String() != u.String() {
			return Identity{}, fmt.Errorf("%w: the certificate's %.128q is no name of samya's", ErrIdentity, u.String())
		}
		found = append(found, id)
	}
	switch {
	case len(found) > 1:
		return Identity{}, fmt.Errorf("%w: the certificate has %d names", ErrIdentity, len(found))
	case len(found) == 0:
		// Only a caller may lack a URI: a name that a CA writes for people opens no link.
		found = []Identity{{Kind: Client, Name: c.Subject.CommonName}}
	}
	if err := found[0].Validate(); err != nil {
		return Identity{}, fmt.Errorf("%w: %w", ErrIdentity, err)
	}
	return found[0], nil
}

// PeerCertificates returns the certificate of the peer of a gRPC call, with the
// certificates between it and its CA; none if the peer gave none. The handshake has
// verified it.
func PeerCertificates(ctx context.Context) []*x509.Certificate {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok {
		return nil
	}
	return info.State.PeerCertificates
}

// PeerIdentity returns the holder that the certificate of the peer of a gRPC call names.
// It fails without a certificate; if the certificate names nobody, the error wraps
// ErrIdentity.
func PeerIdentity(ctx context.Context) (Identity, error) {
	chain := PeerCertificates(ctx)
	if len(chain) == 0 {
		return Identity{}, errNone
	}
	return IdentityOf(chain[0])
}
