package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/samya-db/samya/appmgr"
	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/membership"
	"github.com/samya-db/samya/internal/tlsconf"
)

// security holds the flags that guard a process of a cluster.
type security struct {
	files         tlsconf.Files
	access, audit string
	inFlight      int
	rate          float64
}

// flags defines the flags.
func (s *security) flags(f *pflag.FlagSet) {
	f.StringVar(&s.files.Cert, "tls-cert", "", "file with this process's certificate in PEM; all TLS files are looked at every 10s")
	f.StringVar(&s.files.Key, "tls-key", "", "file with the certificate's key in PEM")
	f.StringVar(&s.files.CA, "tls-ca", "", "file with the certificates of the CAs that are trusted, in PEM")
	f.StringVar(&s.files.CRL, "tls-crl", "", "file with the CAs' revocation lists in PEM")
	f.StringVar(&s.access, "access-file", "", "file with the rights of callers (YAML, see docs/security.md); looked at every 10s. Without the file every caller may do everything")
	f.StringVar(&s.audit, "audit-file", "", "file that administrative changes are added to as lines of JSON (default: audit.log in the data directory of a site with an access file)")
	f.IntVar(&s.inFlight, "max-concurrent", appmgr.DefaultMaxConcurrent, "how many calls are under way at most; further ones are refused. Streams have bounds of their own")
	f.Float64Var(&s.rate, "max-rate", 0, "operations a second that a caller may ask for, each operation of a batch or stream counted; 0: no bound")
}

// guardConfig holds further settings of a process for its guards.
type guardConfig struct {
	data    string // data directory of a site
	keyFile string
	relays  bool
	judging bool // check only, and write nothing
	log     *slog.Logger
}

// guards are the TLS files and the access control of a process.
type guards struct {
	tls        *tlsconf.Store
	access     *access.Guard
	restricted bool
}

// open reads all files. A file with a wrong content is wrong usage.
func (s *security) open(c guardConfig) (*guards, error) {
	if c.keyFile != "" {
		if _, err := membership.ReadKeys(c.keyFile); err != nil {
			return nil, atFault("gossip-key-file", err)
		}
	}
	if s.rate < 0 {
		return nil, &usageError{errors.New("max-rate: must not be below 0")}
	}
	g := &guards{restricted: s.access != ""}
	if s.files.Set() {
		if s.files.Cert == "" {
			return nil, &usageError{errors.New("tls-cert: missing; --tls-cert, --tls-key and --tls-ca belong together")}
		}
		var err error
		if g.tls, err = tlsconf.Open(s.files, c.log); err != nil {
			return nil, atFault("tls", err)
		}
	}
	cfg := access.Config{
		File: s.access, Audit: s.audit, TLS: g.tls, Relays: c.relays, Logger: c.log,
		Limits: access.Limits{Rate: s.rate},
	}
	if c.relays {
		// An app manager bounds its calls under way itself.
		cfg.Limits.InFlight = s.inFlight
	}
	switch {
	case c.judging:
		cfg.Audit = ""
	case cfg.Audit == "" && s.access != "" && c.data != "":
		if err := os.MkdirAll(c.data, 0o700); err != nil {
			return nil, fmt.Errorf("make the data directory: %w", err)
		}
		cfg.Audit = filepath.Join(c.data, "audit.log")
	}
	var err error
	if g.access, err = access.Open(cfg); err != nil {
		return nil, atFault("access", err)
	}
	return g, nil
}

// atFault returns the error of a file: wrong usage if the content is wrong, but not if
// the file cannot be read.
func atFault(what string, err error) error {
	err = fmt.Errorf("%s: %w", what, err)
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return err
	}
	return &usageError{err}
}

func (g *guards) close() {
	// Every line of the audit file is on disk already.
	_ = g.access.Close()
}
