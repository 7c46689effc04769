// Package tlsconf makes the TLS settings of samya's servers and clients out of files, and
// takes up changed files without a restart. It refuses any version below TLS 1.3, and any
// peer other than the called holder. It refuses any certificate that CAs, dates or
// revocation lists do not vouch for.
//
// A certificate names its holder by a single URI: samya://site/NAME, samya://appmgr/NAME
// or samya://client/NAME. A client's certificate may name it by its common name alone.
package tlsconf
