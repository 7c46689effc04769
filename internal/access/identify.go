package access

import (
	"crypto/sha256"
	"crypto/x509"
	"strings"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/methods"
	"github.com/samya-db/samya/internal/tlsconf"
)

const (
	// maxJWTs bounds the remembered verified JWTs.
	maxJWTs = 10_000
	// jwtTime is how long a JWT is remembered: after it, the dates are checked again.
	jwtTime = 10 * time.Second
)

// credentials are the proof of identity that a caller shows.
type credentials struct {
	// authorization is the Authorization header; empty for none.
	authorization string
	// chain is the certificate of the caller's connection; empty for none.
	chain []*x509.Certificate
	// inside is the caller within this process; nil for a caller from outside, who shows the
	// others.
	inside *principal
}

// identify returns the caller that shows the credentials. If there are a token and a
// certificate, both must be good, and the token names the caller.
func (g *Guard) identify(c credentials) (*principal, error) {
	if c.inside != nil {
		return c.inside, nil
	}
	if len(c.chain) > 0 && g.cfg.TLS != nil {
		if err := g.cfg.TLS.Good(c.chain); err != nil {
			return nil, unauthenticated("the certificate is not good any more")
		}
	}
	p := g.policy.Load()
	if c.authorization != "" && p != nil {
		return g.bearer(p, c.authorization)
	}
	if len(c.chain) > 0 {
		return certified(p, c.chain[0])
	}
	if p == nil {
		return anonymous, nil
	}
	return nil, unauthenticated("neither a token nor a certificate")
}

// certified returns the caller that a certificate names.
func certified(p *policy, leaf *x509.Certificate) (*principal, error) {
	id, err := tlsconf.IdentityOf(leaf)
	if err != nil {
		return nil, unauthenticated("the certificate names nobody that is known")
	}
	switch {
	case id.Kind == tlsconf.AppManager:
		// The app manager has checked its own callers against the rules.
		return &principal{Name: id.String(), Role: methods.Admin, Kind: id.Kind}, nil
	case id.Kind == tlsconf.Site:
		// The site has checked the callers that it serves beside its own API.
		return &principal{Name: id.String(), Role: methods.Client, Kind: id.Kind}, nil
	case p == nil:
		return anonymous, nil
	}
	if caller := p.certs[id.Name]; caller != nil {
		return caller, nil
	}
	return nil, unauthenticated("the certificate names nobody that is known")
}

// bearer returns the caller of the token in a header.
func (g *Guard) bearer(p *policy, header string) (*principal, error) {
	scheme, token, ok := strings.Cut(header, " ")
	if token = strings.TrimSpace(token); !ok || !strings.EqualFold(scheme, "Bearer") || token == "" {
		return nil, unauthenticated("the authorization must be Bearer and a token")
	}
	if len(token) > maxToken {
		return nil, unauthenticated("the token is too long")
	}
	// Only the token's hash is looked up, so that the time it takes tells nothing about
	// the token.
	if caller := p.tokens[sha256.Sum256([]byte(token))]; caller != nil {
		return caller, nil
	}
	if len(p.issuers) == 0 || !looksLikeJWT(token) {
		return nil, unauthenticated("the token is none that is known")
	}
	return g.jwt(p, token)
}

// jwt returns the caller that a JWT names.
func (g *Guard) jwt(p *policy, token string) (*principal, error) {
	now := g.now()
	g.mu.Lock()
	if g.jwtsBy != p {
		clear(g.jwts)
		g.jwtsBy = p
	}
	v, ok := g.jwts[token]
	g.mu.Unlock()
	if ok && now.Before(v.until) {
		return v.caller, nil
	}
	caller, err := p.callerOf(token, now)
	if err != nil {
		g.log.Debug("a JWT is refused", "error", err)
		return nil, unauthenticated("the token is none that is taken")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.jwtsBy == p {
		if len(g.jwts) >= maxJWTs {
			clear(g.jwts)
		}
		g.jwts[token] = verified{caller, now.Add(jwtTime)}
	}
	return caller, nil
}

func unauthenticated(why string) error {
	return apierr.New(apierr.Unauthenticated, "%s", why)
}

// admit returns the session of a call of a method, or why the call is refused.
func (g *Guard) admit(method string, c credentials) (*session, error) {
	m, ok := methods.Of(method)
	if !ok {
		return nil, apierr.New(apierr.RouteNotFound, "no method %.128q that anybody may call", method)
	}
	rule := m.Rule
	s := &session{guard: g, method: method, rule: rule, caller: anonymous, scope: Scope{}}
	if rule.Least == methods.Nobody && !rule.Sites {
		return s, nil
	}
	caller, err := g.identify(c)
	if err != nil {
		return s, err
	}
	s.caller, s.scope = caller, caller.Scope
	denied := func(why string) (*session, error) {
		return s, apierr.New(apierr.PermissionDenied, "%s: %s", caller.Name, why)
	}
	switch {
	case rule.Sites && (g.cfg.TLS == nil || caller.Kind == tlsconf.Site):
	case rule.Sites:
		return denied("only other sites may do this")
	case caller.Kind == tlsconf.AppManager && !g.cfg.Relays:
		return denied("an app manager calls nothing but sites")
	case caller.Kind == tlsconf.Site && (!rule.Peers || !g.cfg.Relays):
		return denied("a site calls nothing but other sites, for tokens")
	case !caller.Role.May(rule):
		return denied("this takes the role " + rule.Least.String())
	case rule.Whole && !caller.Scope.All():
		return denied("only a caller of all entities may do this")
	}
	return s, nil
}

// refusal counts a refusal and returns it as an *apierr.Error.
func (g *Guard) refusal(err error) error {
	if err == nil {
		return nil
	}
	e := apierr.From(err)
	switch e.Reason {
	case apierr.Unauthenticated, apierr.PermissionDenied, apierr.RateLimited, apierr.Overloaded:
		g.metrics.refused.WithLabelValues(string(e.Reason)).Inc()
	}
	return e
}
