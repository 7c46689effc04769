// Command release builds the files that users of samya download: archives for each
// platform, container images, the Helm chart, lists of the modules in each binary, and
// checksums. It refuses to depend on where and when it runs: the same commit, built with the same
// version of Go, gives the same bytes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "release: "+err.Error())
		os.Exit(1)
	}
}

// The commands.
const (
	commandBuild = "build" // all there is to download
	commandImage = "image" // the images alone
	commandCheck = "check" // build twice, and compare
)

// errUsage says that the command line is wrong.
var errUsage = errors.New("usage: release [flags] build | image | check")

// run executes a command line.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(stdout)
	dir := flags.String("source", ".", "directory of the repository")
	out := flags.String("out", "dist", "directory to write to; an earlier release in it is removed")
	modified := flags.Bool("modified", false, "build also what is not committed; the version says so")
	list := flags.String("platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "what to build for")
	if err := flags.Parse(args); err != nil {
		return err
	}
	platforms, err := parsePlatforms(*list)
	if err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errUsage
	}
	src, err := readSource(ctx, *dir)
	if err != nil {
		return err
	}
	if flags.Arg(0) == commandCheck {
		src = src.committed()
	}
	if src.modified && !*modified {
		return fmt.Errorf("%s: something is not committed; commit it, or pass -modified", *dir)
	}
	r := &release{source: src, platforms: platforms, out: *out, log: stdout}
	switch flags.Arg(0) {
	case commandBuild:
		return r.build(ctx)
	case commandImage:
		return r.images(ctx)
	case commandCheck:
		return r.check(ctx)
	}
	return errUsage
}

// platform is the system and architecture of a binary.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "_" + p.arch }

// parsePlatforms reads "os/arch,os/arch".
func parsePlatforms(list string) ([]platform, error) {
	var all []platform
	for item := range strings.SplitSeq(list, ",") {
		goos, arch, ok := strings.Cut(item, "/")
		if !ok || goos == "" || arch == "" {
			return nil, fmt.Errorf("platforms: %q, must be os/arch", item)
		}
		all = append(all, platform{goos, arch})
	}
	return all, nil
}
