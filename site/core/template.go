package core

import (
	"strings"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core/keys"
)

// A template is a rate quota with keys: each name below its name has a quota to itself, of the
// same terms, from the first use on. Nobody creates a key, and the sites agree on none: of
// each key a site has the part of the limit that it has of the template. So the template's
// escrow moves between sites by the rules of any entity, and package keys has what a site
// knows of a key.
//
// Tokens of the template stand for tokens of every key:
//
//   - A bucket's share is left + net of the template. It is cut before tokens leave, and keys
//     do not fill faster than it before tokens come.
//   - A window's share is the template's tokens left. Tokens that come are late until the
//     next window, as the giver may have granted them of any key in this window.
//
// An acquire of a key does not wait. If the site has too few tokens of the key the caller asks
// other sites; see answer.Answer.Elsewhere. A site has no record of that refusal: the
// attempt has moved nothing, and the caller makes no other attempt here but for a later one.

// isTemplate reports whether an entity is a template.
func isTemplate(e *entity) bool {
	r := rateOf(e)
	return r != nil && r.Terms.Keys
}

// enroll has the keys of an entity found, if it is a template.
func (s *space) enroll(e *entity) {
	if isTemplate(e) {
		s.templates[e.name] = e
	}
}

// dismiss ends the keys of an entity, if it is a template.
func (s *space) dismiss(e *entity) {
	if isTemplate(e) {
		delete(s.templates, e.name)
		s.keys -= rateOf(e).keyCount()
	}
}

// above is the template above a name and the key below it; nil if there is none, or if an
// entity has the name.
func (s *space) above(name string) (*entity, string) {
	if len(s.templates) == 0 {
		return nil, ""
	}
	for at := len(name); ; {
		if at = strings.LastIndexByte(name[:at], '/'); at < 0 {
			return nil, ""
		}
		if e := s.templates[name[:at]]; e != nil {
			return e, name[at+1:]
		}
	}
}

// shareOfKeys is a site's part of the limit of a template when the template is created.
func shareOfKeys(name string, limit Tokens, voters avantan.View, site SiteID) Tokens {
	switch keys.Home(name, int64(limit), voters) {
	case "":
		return shareOf(limit, voters, site)
	case site:
		return limit
	}
	return 0
}
