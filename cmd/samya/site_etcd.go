package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/samya-db/samya/site/standby"
)

// The kinds of a site's log, for --log.
const (
	logDisk = "disk"
	logEtcd = "etcd"
)

// etcdFlags are the flags of a site with its log in etcd.
type etcdFlags struct {
	log                       string
	node                      standby.Config
	user, passwordFile        string
	caFile, certFile, keyFile string
}

func (e *etcdFlags) flags(f *pflag.FlagSet) {
	f.StringVar(&e.log, "log", logDisk, "where the site's log is: disk (this machine's), or etcd, with several nodes of the site")
	f.StringVar(&e.node.Node, "node", "", "name of this node of the site, with --log etcd: unique among its nodes")
	f.StringSliceVar(&e.node.Etcd.Endpoints, "etcd-endpoints", nil, "addresses of etcd's members, host:port,…")
	f.DurationVar(&e.node.Etcd.Timeout, "etcd-timeout", 2*time.Second, "how long a call to etcd may take before it is repeated")
	f.StringVar(&e.user, "etcd-user", "", "user of etcd")
	f.StringVar(&e.passwordFile, "etcd-password-file", "", "file with the password of etcd's user")
	f.StringVar(&e.caFile, "etcd-ca", "", "file with the certificates of the CAs that etcd is trusted by, in PEM")
	f.StringVar(&e.certFile, "etcd-cert", "", "file with the certificate for etcd in PEM")
	f.StringVar(&e.keyFile, "etcd-key", "", "file with that certificate's key in PEM")
	f.DurationVar(&e.node.TakeOver, "take-over", 1500*time.Millisecond, "how long the active node may give no sign of life before another node takes its place")
	f.BoolVar(&e.node.AwaitLog, "await-log", false, "begin no log in etcd, and wait until another node has: for further nodes of a site that goes over from its disk")
	f.BoolVar(&e.node.KeepHistory, "etcd-keep-history", false, "leave etcd's compaction to etcd; otherwise the active node compacts it once a minute")
}

func (e *etcdFlags) completions(cmd *cobra.Command) {
	must(cmd.RegisterFlagCompletionFunc("log", cobra.FixedCompletions([]string{logDisk, logEtcd}, cobra.ShellCompDirectiveNoFileComp)))
}

// complete checks the flags, and reads the files that they name. replicated says that the
// log is in etcd.
func (e *etcdFlags) complete() (replicated bool, err error) {
	switch e.log {
	case logDisk:
		if e.node.Node != "" || len(e.node.Etcd.Endpoints) > 0 || e.node.AwaitLog {
			return false, &usageError{errors.New("log: --node, --etcd-endpoints and --await-log are for --log etcd")}
		}
		return false, nil
	case logEtcd:
	default:
		return false, &usageError{fmt.Errorf("log: %.32q, must be disk or etcd", e.log)}
	}
	e.node.Etcd.User = e.user
	if e.passwordFile != "" {
		raw, err := os.ReadFile(e.passwordFile)
		if err != nil {
			return false, atFault("etcd-password-file", err)
		}
		e.node.Etcd.Password = strings.TrimSpace(string(raw))
	}
	if (e.user == "") != (e.node.Etcd.Password == "") {
		return false, &usageError{errors.New("etcd-user: --etcd-user and --etcd-password-file belong together")}
	}
	if e.node.Etcd.TLS, err = e.tls(); err != nil {
		return false, atFault("etcd-ca", err)
	}
	return true, nil
}

// tls returns the configuration of connections to etcd; nil for connections in clear. The
// files of the certificate are read at each connection.
func (e *etcdFlags) tls() (*tls.Config, error) {
	if e.caFile == "" && e.certFile == "" && e.keyFile == "" {
		return nil, nil //nolint:nilnil // in clear
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if e.caFile != "" {
		pem, err := os.ReadFile(e.caFile)
		if err != nil {
			return nil, fmt.Errorf("reading the CAs: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate in PEM", e.caFile)
		}
	}
	if e.certFile == "" && e.keyFile == "" {
		return cfg, nil
	}
	read := func() (*tls.Certificate, error) {
		cert, err := tls.LoadX509KeyPair(e.certFile, e.keyFile)
		if err != nil {
			return nil, fmt.Errorf("reading the certificate for etcd: %w", err)
		}
		return &cert, nil
	}
	if _, err := read(); err != nil {
		return nil, err
	}
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return read() }
	return cfg, nil
}
