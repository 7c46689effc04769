// Command docsite prepares the pages of the documentation site, and checks the site that
// is built of them. The pages of docs/ stay as they are; docsite adapts copies to the
// generator. It refuses to render pages itself: VitePress does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "docsite: "+err.Error())
		os.Exit(1)
	}
}

// headerTimeout bounds the wait for the header of a request.
const headerTimeout = 10 * time.Second

// run executes a command line.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	f := flag.NewFlagSet("docsite", flag.ContinueOnError)
	root := f.String("root", ".", "directory of the project")
	out := f.String("out", "", "stage: directory to write the pages to")
	site := f.String("site", "", "check, serve: directory of the site")
	base := f.String("base", "/", "check: path of the site at its host")
	addr := f.String("addr", "127.0.0.1:8099", "serve: address to listen on")
	if err := f.Parse(args); err != nil {
		return err
	}
	switch f.Arg(0) {
	case "stage":
		pages, err := Stage(*root, *out)
		if err == nil {
			_, err = fmt.Fprintf(stdout, "%d pages\n", pages)
		}
		return err
	case "check":
		result, err := Check(*site, *base)
		if err != nil {
			return err
		}
		for _, fault := range result.Faults {
			_, _ = fmt.Fprintln(stdout, fault) // the exit status tells as well
		}
		if n := len(result.Faults); n > 0 {
			return fmt.Errorf("%d faults", n)
		}
		_, err = fmt.Fprintf(stdout, "%d pages, %d links and %d pictures are well\n", result.Pages, result.Links, result.Pictures)
		return err
	case "serve":
		return serve(ctx, *site, *addr, stdout)
	}
	return fmt.Errorf("%q: the commands are stage, check and serve", f.Arg(0))
}

// serve serves a directory until ctx ends.
func serve(ctx context.Context, site, addr string, stdout io.Writer) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("serve the site: %w", err)
	}
	server := &http.Server{Handler: http.FileServer(http.Dir(site)), ReadHeaderTimeout: headerTimeout}
	context.AfterFunc(ctx, func() { _ = server.Close() }) // nobody waits for the rest of an answer
	if _, err := fmt.Fprintf(stdout, "http://%s/\n", l.Addr()); err != nil {
		return fmt.Errorf("print the address: %w", err)
	}
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the site: %w", err)
	}
	return nil
}
