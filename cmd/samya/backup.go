package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/store"
)

// siteBackup is `samya site backup`.
func (p *program) siteBackup() *cobra.Command {
	var t *talker
	var site, to string
	cmd := &cobra.Command{
		Use:   "backup --site SITE --to FILE",
		Short: "Back up the data of a running site",
		Long: `Writes all data of a site, as of a single commit, to a file, while the site
serves. The file is compressed and has checksums; it is verified as it comes, and
gets its name only if it is complete. It takes the role admin.

A backup brings back a site whose disk is lost, as long as the site has done
nothing since: the other sites refuse data older than they remember. See
docs/backup.md.`,
		Example: "  samya site backup --site us --to us.backup\n  samya site backup --site 10.0.0.1:7001 --to - | ssh vault 'cat >us.backup'",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case to == "":
				return &usageError{errNoOutput}
			case to == "-" && isTerminal(p.stdout):
				return &usageError{errors.New("to: a backup is not for a terminal")}
			}
			ctx := cmd.Context()
			addr, err := t.siteAddress(ctx, site)
			if err == nil {
				err = t.backUp(ctx, addr, to)
			}
			return interrupted(ctx, err)
		},
	}
	t = p.talk(cmd)
	cmd.Flags().StringVar(&site, "site", "", "the site to back up: its name, for whose address the app manager is asked, or its gRPC address as host:port")
	cmd.Flags().StringVar(&to, "to", "", toUsage)
	return cmd
}

// siteAddress returns the gRPC address of a site that is named by name or by address.
func (t *talker) siteAddress(ctx context.Context, site string) (string, error) {
	if strings.Contains(site, ":") {
		return site, nil
	}
	if err := name.Site("site", site); err != nil {
		return "", err
	}
	client, err := t.client()
	if err != nil {
		return "", err
	}
	var addr string
	err = within(ctx, 0, func(ctx context.Context) error {
		s, err := client.ListSites(ctx)
		if err != nil {
			return fmt.Errorf("look up site %s: %w", site, err)
		}
		for _, known := range s.Sites {
			if known.Name == site {
				addr = known.Address
			}
		}
		if addr == "" {
			return &hintError{fmt.Errorf("the address of site %s is not known", site), "pass its gRPC address with --site; samya sites shows which sites there are"}
		}
		return nil
	})
	return addr, err
}

// backUp writes a backup of the site at an address.
func (t *talker) backUp(ctx context.Context, addr, to string) error {
	conn, err := dialSite(addr, &t.secrets)
	if err != nil {
		return err
	}
	// The connection served a single call, which has ended.
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := samyav1.NewSiteServiceClient(conn).Backup(ctx, &samyav1.BackupRequest{})
	if err != nil {
		return siteFailed(addr, "makes no backups", err)
	}
	out, err := t.program.output(to)
	if err != nil {
		return err
	}
	counter := t.program.counter()
	v, err := receive(stream.Recv, func(b []byte) error {
		counter.n += int64(len(b))
		counter.tell("%.1f MB", float64(counter.n)/1e6)
		_, err := out.Write(b)
		return err
	})
	counter.end()
	if err != nil {
		out.discard()
		return siteFailed(addr, "makes no backups", err)
	}
	if err := out.publish(); err != nil {
		return err
	}
	if t.json && to != "-" {
		return t.print(backupFacts(&v), nil)
	}
	_, err = fmt.Fprintf(t.program.stderr, "backed up %s\n", describe(&v))
	return err
}

// receive hands over the parts of a backup from a stream, and verifies it meanwhile.
func receive(next func() (*samyav1.BackupResponse, error), to func([]byte) error) (v store.Verified, err error) {
	read, write := io.Pipe()
	verified := make(chan error, 1)
	go func() {
		var err error
		v, err = store.Verify(read)
		// Bytes after an error are not needed.
		_ = read.CloseWithError(err)
		verified <- err
	}()
	for err == nil {
		var m *samyav1.BackupResponse
		if m, err = next(); err == nil {
			if _, err = write.Write(m.GetData()); err == nil {
				err = to(m.GetData())
			}
		}
	}
	if !errors.Is(err, io.EOF) {
		_ = write.CloseWithError(err)
		<-verified //nolint:errcheck // it is of a part
		return v, err
	}
	_ = write.Close()
	err = <-verified
	return v, err
}

// siteRestore is `samya site restore`.
func (p *program) siteRestore() *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use:   "restore FILE --data DIR",
		Short: "Make a site's data directory of a backup",
		Long: `Makes a data directory of a backup, for a site whose data is lost. The whole
backup is verified first. The directory must be empty; it is complete once the
command ends without an error.

Start the site on it as before. If the site has changed anything since the
backup was made, and another site remembers that, the start is refused:
docs/backup.md tells what can be done then.`,
		Example: "  samya site restore us.backup --data /var/lib/samya",
		Args:    exactly("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			if data == "" {
				return &usageError{errors.New("data: missing; the directory to make")}
			}
			f, err := os.Open(args[0])
			if err != nil {
				return fmt.Errorf("restore: %w", err)
			}
			defer func() { _ = f.Close() }() // it was read
			v, err := store.Restore(data, f)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(p.stdout, "restored %s\nstart it with: samya site --name %s --cluster %s --data %s …\n", describe(&v), v.Site, v.Cluster, data)
			return err
		},
	}
	cmd.Flags().StringVar(&data, "data", "", dataUsage)
	return cmd
}

// backupCommand is `samya backup`.
func (p *program) backupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "backup",
		Short:   "Verify the backup of a site",
		GroupID: groupServe,
		Args:    exactly(),
	}
	var asJSON bool
	verify := &cobra.Command{
		Use:   "verify FILE",
		Short: "Check a backup, and tell what is in it",
		Long: `Reads a backup to its end, checks all checksums and decodes every value. The
exit status is 0 if a site can be restored from it, and 1 if not.`,
		Example: "  samya backup verify us.backup",
		Args:    exactly("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := os.Open(args[0])
			if err != nil {
				return fmt.Errorf("verify: %w", err)
			}
			defer func() { _ = f.Close() }() // it was read
			v, err := store.Verify(f)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			facts := backupFacts(&v)
			t := &talker{program: p, json: asJSON}
			return t.print(facts, func(w io.Writer) {
				row(w, "cluster", facts.Cluster)
				row(w, "site", facts.Site)
				row(w, "members", strings.Join(facts.Members, ", "))
				row(w, "data", facts.Incarnation)
				row(w, "commit", facts.Commit)
				row(w, "made", facts.Time.Format(time.RFC3339))
				row(w, "by", facts.Build)
				row(w, "entities", facts.Entities)
				row(w, "leases", facts.Leases)
				row(w, "records", facts.Records)
				row(w, "size", fmt.Sprintf("%d bytes", facts.Bytes))
			})
		},
	}
	verify.Flags().BoolVar(&asJSON, "json", false, jsonUsage)
	cmd.AddCommand(verify)
	return cmd
}

// facts tell of a backup in JSON.
type facts struct {
	Cluster     string    `json:"cluster"`
	Site        string    `json:"site"`
	Members     []string  `json:"members"`
	Incarnation string    `json:"incarnation"`
	Commit      uint64    `json:"commit"`
	Time        time.Time `json:"time"`
	Build       string    `json:"build"`
	Entities    int       `json:"entities"`
	Leases      int       `json:"leases"`
	Records     int       `json:"records"`
	Bytes       int64     `json:"bytes"`
}

func backupFacts(v *store.Verified) facts {
	return facts{
		Cluster: v.Cluster, Site: v.Site, Members: v.Members, Incarnation: fmt.Sprintf("%016x", v.Incarnation),
		Commit: v.Commit, Time: v.Time, Build: v.Build, Entities: v.Entities, Leases: v.Leases, Records: v.Records, Bytes: v.Bytes,
	}
}

// describe tells of a backup in a line.
func describe(v *store.Verified) string {
	return fmt.Sprintf("site %s of cluster %s as of commit %d, %s: %d entities, %d leases, %d bytes",
		v.Site, v.Cluster, v.Commit, v.Time.Format(time.RFC3339), v.Entities, v.Leases, v.Bytes)
}
