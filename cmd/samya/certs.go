package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/internal/devca"
	"github.com/samya-db/samya/internal/tlsconf"
)

// The default lives of certificates.
const (
	caLife   = 10 * 365 * 24 * time.Hour
	certLife = 365 * 24 * time.Hour
)

// certs is `samya certs`.
type certs struct {
	*program
	dir     string
	life    time.Duration
	hosts   []string
	replace bool
}

// certsCommand is `samya certs`.
func (p *program) certsCommand() *cobra.Command {
	c := &certs{program: p}
	cmd := &cobra.Command{
		Use:   "certs",
		Short: "Make certificates, keys and tokens for a cluster",
		Long: `Keeps a certificate authority in a directory, for development and for clusters that
have no other: certificates of sites, app managers and callers, the list of those
that are revoked, keys of gossip, and tokens of callers.

Whoever reads ca-key.pem can be anybody. Keep the directory off the machines that
serve: each needs its own certificate and key, ca.pem, and crl.pem.`,
		Example: `  samya certs ca --dir certs
  samya certs site us --dir certs --host 10.0.0.1,us.samya.example
  samya certs appmgr am-us --dir certs --host api.samya.example
  samya certs client billing --dir certs
  samya certs revoke certs/client-billing.pem --dir certs`,
		GroupID: groupServe,
		Args:    exactly(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&c.dir, "dir", "certs", "directory of the certificate authority")
	cmd.AddCommand(c.ca(), c.revoke(), c.gossipKey(), c.token())
	for _, issued := range []struct {
		kind         tlsconf.Kind
		short, other string
	}{
		{tlsconf.Site, "Make the certificate of a site", "Other sites and app managers know the site by the name in it."},
		{tlsconf.AppManager, "Make the certificate of an app manager", "App managers of a group may share one."},
		{tlsconf.Client, "Make the certificate of a caller", "What the caller may do stands in the access file, under the name in it."},
	} {
		cmd.AddCommand(c.issue(issued.kind, issued.short, issued.other))
	}
	return cmd
}

// ca is `samya certs ca`.
func (c *certs) ca() *cobra.Command {
	var cluster string
	cmd := &cobra.Command{
		Use: "ca", Short: "Make a certificate authority", Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			if _, err := devca.Create(c.dir, cluster, c.life); err != nil {
				return c.exists(fmt.Errorf("make a certificate authority: %w", err))
			}
			c.say("%s/%s signs; %s/%s is what everybody trusts\n", c.dir, devca.KeyFile, c.dir, devca.CertFile)
			return nil
		},
	}
	cmd.Flags().StringVar(&cluster, "cluster", "samya", "name of the cluster, told in the authority's name")
	cmd.Flags().DurationVar(&c.life, "life", caLife, "for how long it is good")
	return cmd
}

// issue is `samya certs site`, `appmgr` and `client`.
func (c *certs) issue(kind tlsconf.Kind, short, long string) *cobra.Command {
	life := certLife
	cmd := &cobra.Command{
		Use: string(kind) + " NAME", Short: short, Long: short + ".\n\n" + long, Args: exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			ca, err := c.load()
			if err != nil {
				return err
			}
			ca.Replace = c.replace
			cert, key, err := ca.Issue(tlsconf.Identity{Kind: kind, Name: args[0]}, c.hosts, life)
			if err != nil {
				return c.exists(fmt.Errorf("make the certificate of %s %s: %w", kind, args[0], err))
			}
			c.say("%s\n%s\n", cert, key)
			return nil
		},
	}
	if kind != tlsconf.Client {
		cmd.Flags().StringSliceVar(&c.hosts, "host", []string{"127.0.0.1", "::1", "localhost"}, "names and IP addresses that callers reach it by")
	}
	cmd.Flags().DurationVar(&life, "life", certLife, "for how long it is good")
	cmd.Flags().BoolVar(&c.replace, "replace", false, "put a new certificate and key in place of those there are")
	return cmd
}

// revoke is `samya certs revoke`.
func (c *certs) revoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke FILE", Short: "Revoke a certificate",
		Long: `Puts a certificate into the authority's revocation list, crl.pem. Processes that have
the list as --tls-crl refuse it from then on, within ten seconds, and close its
connections.`,
		Args: exactly("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			ca, err := c.load()
			if err != nil {
				return err
			}
			b, err := os.ReadFile(args[0])
			if err != nil {
				return fmt.Errorf("read the certificate: %w", err)
			}
			if err := ca.Revoke(b); err != nil {
				return fmt.Errorf("revoke %s: %w", args[0], err)
			}
			c.say("%s/%s\n", c.dir, devca.CRLFile)
			return nil
		},
	}
}

// gossipKey is `samya certs gossip-key`.
func (c *certs) gossipKey() *cobra.Command {
	return &cobra.Command{
		Use: "gossip-key", Short: "Print a new key of gossip",
		Long: `Prints a new key of gossip, a line for the file that --gossip-key-file names. To
exchange the key of a running cluster, first add the new one as the last line
everywhere, then make it the first everywhere, then take the old one out.`,
		Example: "  samya certs gossip-key > gossip.key",
		Args:    exactly(),
		RunE: func(*cobra.Command, []string) error {
			key := make([]byte, 32)
			if _, err := rand.Read(key); err != nil {
				return fmt.Errorf("make a key: %w", err)
			}
			c.say("%s\n", base64.StdEncoding.EncodeToString(key))
			return nil
		},
	}
}

// token is `samya certs token`.
func (c *certs) token() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use: "token", Short: "Make a token of a caller",
		Long: `Writes a new token of 256 random bits to a file that nobody else may read, and prints
its SHA-256, which is what the access file has as token_sha256.`,
		Example: "  samya certs token --out billing.token",
		Args:    exactly(),
		RunE: func(*cobra.Command, []string) error {
			secret := make([]byte, 32)
			if _, err := rand.Read(secret); err != nil {
				return fmt.Errorf("make a token: %w", err)
			}
			token := base64.RawURLEncoding.EncodeToString(secret)
			f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return c.exists(fmt.Errorf("write the token: %w", err))
			}
			_, err = f.WriteString(token + "\n")
			if err := errors.Join(err, f.Close()); err != nil {
				return fmt.Errorf("write the token: %w", err)
			}
			sum := sha256.Sum256([]byte(token))
			c.say("%s\n", hex.EncodeToString(sum[:]))
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", "samya.token", "file to write the token to")
	return cmd
}

func (c *certs) load() (*devca.CA, error) {
	ca, err := devca.Load(c.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &hintError{fmt.Errorf("read the certificate authority: %w", err), "make one with: samya certs ca --dir " + c.dir}
	}
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority: %w", err)
	}
	return ca, nil
}

// exists adds a hint to the error that a file exists.
func (c *certs) exists(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return &hintError{err, "nothing is overwritten; choose another place, or pass --replace where there is such a flag"}
	}
	return err
}

func (c *certs) say(format string, args ...any) {
	_, _ = fmt.Fprintf(c.stdout, format, args...) // no other output is left for an error
}
