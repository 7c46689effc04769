package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"runtime"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/appmgr/console"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/tlsconf"
)

// consoleCommand is `samya console`.
func (p *program) consoleCommand() *cobra.Command {
	var t *talker
	var listen string
	var show bool
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Serve the web console on this machine, with this caller's credentials",
		Long: `Serves the web console on this machine until it is interrupted, and passes its
requests on to an app manager, with the credentials of this command. It prints
the URL to open, for a single browser; the next URL follows once a URL was
used. Whoever opens the URL may do what the credentials allow.

App managers serve the same console themselves, at /console/.`,
		Example: "  samya console\n  samya console --addr https://api.samya.example:8080 --tls-ca ca.pem --token-file kim.token --open",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !tlsconf.Loopback(listen) {
				return &usageError{fmt.Errorf("http: %s, must be an address of this machine alone, such as 127.0.0.1:0", listen)}
			}
			addr, transport, err := t.secrets.transport(t.addr)
			if err != nil {
				return err
			}
			if _, err := httpapi.New(addr, transport); err != nil {
				return &usageError{fmt.Errorf("addr: %w", err)}
			}
			if !strings.Contains(addr, "://") {
				addr = "http://" + addr
			}
			l, err := new(net.ListenConfig).Listen(cmd.Context(), "tcp", listen)
			if err != nil {
				return fmt.Errorf("listen for the console: %w", err)
			}
			var first sync.Once
			local, err := console.NewLocal(console.LocalConfig{Target: addr, Transport: transport, Listener: l, Ready: func(url string) {
				text := "for another browser: " + url
				first.Do(func() {
					text = "the console of " + addr + ": " + url
					if show {
						p.browse(cmd.Context(), url)
					}
				})
				// Without a reader nobody opens the console.
				_ = t.print(map[string]string{"url": url}, func(w io.Writer) { row(w, text) })
			}})
			if err != nil {
				return err
			}
			return local.Serve(cmd.Context())
		},
	}
	t = p.talk(cmd)
	f := cmd.Flags()
	f.StringVar(&listen, "http", "127.0.0.1:0", "address to serve HTTP on; this machine alone, port 0: a free one")
	f.BoolVar(&show, "open", false, "open the console in the browser")
	return cmd
}

// browse opens a URL in the person's browser. If none can be started, the printed URL is
// left.
func (p *program) browse(ctx context.Context, url string) {
	name, args := "xdg-open", []string{url}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", url}
	}
	c := exec.CommandContext(context.WithoutCancel(ctx), name, args...)
	if err := c.Start(); err != nil {
		_, _ = fmt.Fprintf(p.stderr, "samya: the browser was not started: %v\n", err)
		return
	}
	go func() { _ = c.Wait() }() // it may stay as long as the browser
}
