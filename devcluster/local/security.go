package local

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/samya-db/samya/internal/devca"
	"github.com/samya-db/samya/internal/tlsconf"
)

// The names of the directory of certificates and of files in it.
const (
	certDir    = "certs"
	gossipFile = "gossip.key"
	accessFile = "access.yaml"
)

// Admin is the name of the caller that may do everything, in its certificate.
const Admin = "admin"

const (
	caLife   = 10 * 365 * 24 * time.Hour
	certLife = 365 * 24 * time.Hour
	// renew is the time before its end from which a certificate is made anew.
	renew = 60 * 24 * time.Hour
)

// access is the access file of a local cluster. It is written only if missing, so that
// the user may change it.
const access = `# Who may call what: docs/security.md. Changes count within ten seconds.
callers:
  - name: admin
    role: admin
    certificate: admin
`

// Credentials returns the administrator's certificate and key and the CA of the cluster;
// none without TLS.
func (c Config) Credentials() tlsconf.Files {
	if !c.TLS {
		return tlsconf.Files{}
	}
	return tlsconf.Files{
		CA:   filepath.Join(c.Dir, certDir, devca.CertFile),
		Cert: c.certificate(tlsconf.Client, Admin), Key: c.key(tlsconf.Client, Admin),
	}
}

// secure makes the processes' missing or expiring certificates, and a gossip key and an
// access file if missing. Running processes read new files by themselves.
func (c Config) secure(wanted []Process) error {
	dir := filepath.Join(c.Dir, certDir)
	ca, err := devca.Load(dir)
	if errors.Is(err, fs.ErrNotExist) {
		ca, err = devca.Create(dir, c.Cluster, caLife)
	}
	if err != nil {
		return fmt.Errorf("the certificate authority of the cluster: %w", err)
	}
	ca.Replace = true
	all := []tlsconf.Identity{{Kind: tlsconf.Client, Name: Admin}}
	for _, p := range wanted {
		if id := (tlsconf.Identity{Kind: p.certificate(), Name: p.site()}); !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	for _, id := range all {
		if lasts(c.certificate(id.Kind, id.Name)) {
			continue
		}
		hosts := []string{"127.0.0.1", "::1", "localhost"}
		if id.Kind == tlsconf.Client {
			hosts = nil
		}
		if _, _, err := ca.Issue(id, hosts, certLife); err != nil {
			return fmt.Errorf("the certificate of %s: %w", id.Name, err)
		}
	}
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return fmt.Errorf("make a key of gossip: %w", err)
	}
	for name, text := range map[string]string{gossipFile: base64.StdEncoding.EncodeToString(key) + "\n", accessFile: access} {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			_, err = f.WriteString(text)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// lasts reports whether the certificate at path is valid for longer than renew.
func lasts(path string) bool {
	b, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return false
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	return err == nil && time.Until(cert.NotAfter) > renew
}

// certificate returns the kind of the process's certificate. The nodes of a site share its
// certificate. A member of etcd has the certificate of a server without tokens.
func (p Process) certificate() tlsconf.Kind {
	if p.Kind == KindSite {
		return tlsconf.Site
	}
	return tlsconf.AppManager
}

func (c Config) certificate(kind tlsconf.Kind, name string) string {
	return filepath.Join(c.Dir, certDir, string(kind)+"-"+name+".pem")
}

func (c Config) key(kind tlsconf.Kind, name string) string {
	return filepath.Join(c.Dir, certDir, string(kind)+"-"+name+"-key.pem")
}

// secureFlags returns the TLS flags of a process.
func (c Config) secureFlags(p Process) []string {
	if !c.TLS {
		return nil
	}
	dir := filepath.Join(c.Dir, certDir)
	return []string{
		"--tls-cert", c.certificate(p.certificate(), p.site()), "--tls-key", c.key(p.certificate(), p.site()),
		"--tls-ca", filepath.Join(dir, devca.CertFile),
		"--gossip-key-file", filepath.Join(dir, gossipFile), "--access-file", filepath.Join(dir, accessFile),
	}
}
