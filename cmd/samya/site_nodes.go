package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// nodeUsage describes the flag --site of commands about nodes.
const nodeUsage = "the site: its name, for whose address the app manager is asked, or its gRPC address as host:port"

// atSite makes a call at a site.
func (t *talker) atSite(ctx context.Context, site string, call func(context.Context, samyav1.SiteServiceClient) error) error {
	addr, err := t.siteAddress(ctx, site)
	if err != nil {
		return err
	}
	conn, err := dialSite(addr, &t.secrets)
	if err != nil {
		return err
	}
	// The connection served a single call, which has ended.
	defer func() { _ = conn.Close() }()
	return within(ctx, 0, func(ctx context.Context) error {
		if err := call(ctx, samyav1.NewSiteServiceClient(conn)); err != nil {
			return siteFailed(addr, "knows no nodes", err)
		}
		return nil
	})
}

// siteNodes is `samya site nodes`.
func (p *program) siteNodes() *cobra.Command {
	var t *talker
	var site string
	cmd := &cobra.Command{
		Use:   "nodes --site SITE",
		Short: "List the nodes of a site whose log is in etcd",
		Long: `Lists the nodes of a site: which one is active, how many commits each is behind, and
how many commits it would have to read from etcd after a crash. A site of a single
process has no nodes.`,
		Example: "  samya site nodes --site us",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			var list *samyav1.ListNodesResponse
			err := t.atSite(ctx, site, func(ctx context.Context, c samyav1.SiteServiceClient) (err error) {
				list, err = c.ListNodes(ctx, &samyav1.ListNodesRequest{})
				return err
			})
			if err != nil {
				return interrupted(ctx, err)
			}
			return t.print(list, func(w io.Writer) {
				row(w, "NODE", "ROLE", "BEHIND", "NOT ON DISK", "TOLD", "BUILD", "HTTP")
				behind := func(n uint64) uint64 { return list.GetLastCommit() - min(n, list.GetLastCommit()) }
				for _, n := range list.GetNodes() {
					row(w, n.GetName(), roleOf(n), behind(n.GetLastCommit()), behind(n.GetDurableCommit()),
						time.Since(n.GetToldAt().AsTime()).Round(100*time.Millisecond).String()+" ago", n.GetBuild(), n.GetHttpAddress())
				}
			})
		},
	}
	t = p.talk(cmd)
	cmd.Flags().StringVar(&site, "site", "", nodeUsage)
	return cmd
}

// roleOf is the role of a node in words.
func roleOf(n *samyav1.SiteNode) string {
	switch {
	case n.GetActive():
		return "active"
	case n.GetCopies():
		return "copies"
	}
	return "standby"
}

// siteHandOver is `samya site hand-over`.
func (p *program) siteHandOver() *cobra.Command {
	var t *talker
	var site, to string
	cmd := &cobra.Command{
		Use:   "hand-over --site SITE",
		Short: "Have another node of a site go on with it",
		Long: `Has another node of a site whose log is in etcd go on with it, before the machine of
the active node is stopped. Callers of the SDK see no error. It takes the role admin.`,
		Example: "  samya site hand-over --site us\n  samya site hand-over --site us --to-node b",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			var done *samyav1.HandOverResponse
			err := t.atSite(ctx, site, func(ctx context.Context, c samyav1.SiteServiceClient) (err error) {
				done, err = c.HandOver(ctx, &samyav1.HandOverRequest{Node: to})
				return err
			})
			if err != nil {
				return interrupted(ctx, err)
			}
			return t.print(done, func(w io.Writer) { row(w, "node "+done.GetNode()+" goes on with the site") })
		},
	}
	t = p.talk(cmd)
	cmd.Flags().StringVar(&site, "site", "", nodeUsage)
	cmd.Flags().StringVar(&to, "to-node", "", "the node that is to go on (default: the one that is least behind)")
	return cmd
}

// siteForgetNode is `samya site forget-node`.
func (p *program) siteForgetNode() *cobra.Command {
	var t *talker
	var site string
	cmd := &cobra.Command{
		Use:   "forget-node NODE --site SITE",
		Short: "Keep nothing in etcd for a node that never comes back",
		Long: `Has a site whose log is in etcd keep no commits for a node that never comes back. A
node of that name that starts again copies another node's data, and counts as new.`,
		Example: "  samya site forget-node b --site us",
		Args:    exactly("NODE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			err := t.atSite(ctx, site, func(ctx context.Context, c samyav1.SiteServiceClient) error {
				_, err := c.ForgetNode(ctx, &samyav1.ForgetNodeRequest{Node: args[0]})
				return err
			})
			if err != nil {
				return interrupted(ctx, err)
			}
			return t.print(struct{}{}, func(w io.Writer) { row(w, "node "+args[0]+" is forgotten") })
		},
	}
	t = p.talk(cmd)
	cmd.Flags().StringVar(&site, "site", "", nodeUsage)
	return cmd
}
