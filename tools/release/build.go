package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// release is a build.
type release struct {
	source    source
	platforms []platform
	out       string
	env       []string // added to the environment of all commands
	log       io.Writer
}

// build makes all files of a release.
func (r *release) build(ctx context.Context) error {
	work, err := r.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }() // in the directory of temporary files
	binaries, err := r.binaries(ctx, work, r.platforms)
	if err != nil {
		return err
	}
	pages, err := r.pages(ctx, work, binaries)
	if err != nil {
		return err
	}
	licences, err := r.licences(ctx)
	if err != nil {
		return err
	}
	for _, p := range r.platforms {
		notices, err := licences.notices(binaries[p])
		if err != nil {
			return err
		}
		files := append([]file{
			{name: "samya", path: binaries[p], mode: 0o755},
			{name: "NOTICES.txt", text: notices, mode: 0o644},
		}, pages...)
		if err := r.archive(p, files); err != nil {
			return err
		}
		if err := r.sbom(p, binaries[p]); err != nil {
			return err
		}
	}
	if err := r.writeImages(binaries); err != nil {
		return err
	}
	if err := r.chart(); err != nil {
		return err
	}
	return r.checksums()
}

// images makes only the images.
func (r *release) images(ctx context.Context) error {
	work, err := r.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }() // in the directory of temporary files
	var linux []platform
	for _, p := range r.platforms {
		if p.os == "linux" {
			linux = append(linux, p)
		}
	}
	binaries, err := r.binaries(ctx, work, linux)
	if err != nil {
		return err
	}
	return r.writeImages(binaries)
}

// begin empties the output directory and returns a temporary directory to work in. It
// exports the commit there, unless the source is exported already or has changes to
// build.
func (r *release) begin(ctx context.Context) (work string, err error) {
	entries, err := os.ReadDir(r.out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("begin: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() || e.Name() != sums && !strings.HasPrefix(e.Name(), "samya_") {
			return "", fmt.Errorf("begin: %s holds %s, which is of no release; it stays, and nothing is built", r.out, e.Name())
		}
	}
	if err := os.RemoveAll(r.out); err != nil {
		return "", fmt.Errorf("begin: %w", err)
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return "", fmt.Errorf("begin: %w", err)
	}
	if work, err = os.MkdirTemp("", "samya-release-"); err != nil {
		return "", fmt.Errorf("begin: %w", err)
	}
	if !r.source.modified && !r.source.exported {
		if r.source, err = r.source.export(ctx, filepath.Join(work, "source")); err != nil {
			_ = os.RemoveAll(work) // in the directory of temporary files
			return "", err
		}
	}
	return work, nil
}

// done prints the name of a written file.
func (r *release) done(file string) {
	_, _ = fmt.Fprintln(r.log, filepath.Join(r.out, file)) // the file is there, whether printed or not
}

// binaries builds samya for the platforms.
func (r *release) binaries(ctx context.Context, work string, platforms []platform) (map[platform]string, error) {
	all := make(map[platform]string)
	for _, p := range platforms {
		path := filepath.Join(work, p.String())
		if err := r.compile(ctx, p, path); err != nil {
			return nil, err
		}
		all[p] = path
	}
	return all, nil
}

// compile builds samya for a platform. The binary holds nothing of the machine: no
// directory, no repository and no setting of Go that changes the code.
func (r *release) compile(ctx context.Context, p platform, path string) error {
	env := append([]string{
		"CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=", "GOFIPS140=off", "GODEBUG=",
		"GOOS=" + p.os, "GOARCH=" + p.arch, "GOAMD64=v1", "GOARM64=v8.0",
	}, r.env...)
	link := fmt.Sprintf("-s -w -X main.releaseVersion=%s -X main.releaseRevision=%s", r.source.version, r.source.revision)
	if _, err := output(ctx, r.source.dir, env, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", link, "-o", path, "./cmd/samya"); err != nil {
		return fmt.Errorf("build for %s: %w", p, err)
	}
	return nil
}

// pages returns the files that go with each binary: texts of the repository, and pages
// that the program writes about itself.
func (r *release) pages(ctx context.Context, work string, binaries map[platform]string) ([]file, error) {
	host := platform{runtime.GOOS, runtime.GOARCH}
	program, ok := binaries[host]
	if !ok {
		program = filepath.Join(work, "host")
		if err := r.compile(ctx, host, program); err != nil {
			return nil, err
		}
	}
	var files []file
	for _, name := range []string{"CHANGELOG.md", "LICENSE", "README.md", "docs/configuration.md"} {
		files = append(files, file{name: filepath.Base(name), path: filepath.Join(r.source.dir, name), mode: 0o644})
	}
	env := append([]string{"TZ=UTC", fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.source.time.Unix())}, r.env...)
	for shell, name := range map[string]string{"bash": "samya.bash", "fish": "samya.fish", "zsh": "_samya"} {
		text, err := output(ctx, work, env, program, "completion", shell)
		if err != nil {
			return nil, fmt.Errorf("completions: %w", err)
		}
		files = append(files, file{name: "completions/" + name, text: text, mode: 0o644})
	}
	man := filepath.Join(work, "man1")
	if _, err := output(ctx, work, env, program, "man", man); err != nil {
		return nil, fmt.Errorf("man pages: %w", err)
	}
	entries, err := os.ReadDir(man)
	if err != nil {
		return nil, fmt.Errorf("man pages: %w", err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".1") {
			files = append(files, file{name: "man/man1/" + e.Name(), path: filepath.Join(man, e.Name()), mode: 0o644})
		}
	}
	return files, nil
}
