// Package tlsconf makes the TLS settings of samya's servers and clients out of
// files, and takes up changed files without a restart. It refuses any version
// below TLS 1.3, a certificate that its CAs, its dates or a revocation list do
// not vouch for, and whoever is not the one that was called.
//
// A certificate names who holds it by one URI: samya://site/NAME,
// samya://appmgr/NAME or samya://client/NAME. A client's may name it by its
// common name alone.
package tlsconf
