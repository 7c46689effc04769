package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// source is the commit to build.
type source struct {
	dir      string // absolute
	version  string // "v1.2.3", or a pseudo-version like Go's without a tag
	revision string
	time     time.Time // of the commit, and of all files of the release
	modified bool      // something in dir is not committed
	exported bool      // dir holds the commit only, and no repository
}

// readSource asks git about the commit in a directory.
func readSource(ctx context.Context, dir string) (source, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return source{}, fmt.Errorf("source: %w", err)
	}
	s := source{dir: abs}
	git := func(args ...string) string {
		if err != nil {
			return ""
		}
		var out string
		out, err = output(ctx, abs, nil, "git", args...)
		return strings.TrimSpace(out)
	}
	s.revision = git("rev-parse", "HEAD")
	seconds := git("show", "-s", "--format=%ct", "HEAD")
	s.modified = git("status", "--porcelain") != ""
	tags := git("tag", "--points-at", "HEAD", "--list", "v*", "--sort=-version:refname")
	if err != nil {
		return source{}, fmt.Errorf("source: %w", err)
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return source{}, fmt.Errorf("source: time of the commit: %w", err)
	}
	s.time = time.Unix(n, 0).UTC()
	s.version, _, _ = strings.Cut(tags, "\n")
	if s.version == "" {
		s.version = fmt.Sprintf("v0.0.0-%s-%.12s", s.time.Format("20060102150405"), s.revision)
	}
	if s.modified {
		s.version += modifiedSuffix
	}
	return s, nil
}

// modifiedSuffix ends the version of a source with uncommitted changes.
const modifiedSuffix = "-modified"

// committed returns the source without uncommitted changes.
func (s source) committed() source {
	s.version, s.modified = strings.TrimSuffix(s.version, modifiedSuffix), false
	return s
}

// export writes the commit's files into a directory, and returns the directory as the
// source. No file of it changes during the compilation.
func (s source) export(ctx context.Context, dir string) (source, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return s, fmt.Errorf("export the source: %w", err)
	}
	archive := filepath.Join(filepath.Dir(dir), filepath.Base(dir)+".tar")
	defer func() { _ = os.Remove(archive) }() // the archive goes with the directory at the latest
	if _, err := output(ctx, s.dir, nil, "git", "archive", "--format=tar", "--output="+archive, s.revision); err != nil {
		return s, fmt.Errorf("export the source: %w", err)
	}
	if _, err := output(ctx, dir, nil, "tar", "-xf", archive); err != nil {
		return s, fmt.Errorf("export the source: %w", err)
	}
	s.dir, s.exported = dir, true
	return s, nil
}

// output runs a program and returns its standard output. It adds env to the environment
// of this process.
func output(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}
