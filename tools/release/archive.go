package main

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// file is a file or a directory to put into an archive.
type file struct {
	name string // the name in the archive; directories end with "/"
	path string // the file to copy; empty: the content is text
	text string
	mode int64
	uid  int // of user and group
}

// archive writes the archive of a platform.
func (r *release) archive(p platform, files []file) error {
	base := fmt.Sprintf("samya_%s_%s", r.source.version, p)
	inside := slices.Clone(files)
	for i := range inside {
		inside[i].name = path.Join(base, inside[i].name)
	}
	name := base + ".tar.gz"
	err := create(filepath.Join(r.out, name), func(w io.Writer) error {
		z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
		if err != nil {
			return err
		}
		if err := writeTar(z, withDirectories(inside), r.source.time); err != nil {
			return err
		}
		return z.Close()
	})
	if err == nil {
		r.done(name)
	}
	return err
}

// create writes a file.
func create(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	if err := write(f); err != nil {
		_ = f.Close() // the file is of no use
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
}

// withDirectories adds the files' parent directories, and sorts.
func withDirectories(files []file) []file {
	all := slices.Clone(files)
	seen := make(map[string]bool)
	for _, f := range files {
		seen[strings.TrimSuffix(f.name, "/")] = true
	}
	for _, f := range files {
		for dir := path.Dir(strings.TrimSuffix(f.name, "/")); dir != "." && !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			all = append(all, file{name: dir + "/", mode: 0o755})
		}
	}
	slices.SortFunc(all, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	return all
}

// writeTar writes the files in their order, all with the time at.
func writeTar(w io.Writer, files []file, at time.Time) error {
	t := tar.NewWriter(w)
	for _, f := range files {
		if err := writeEntry(t, f, at); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return t.Close()
}

func writeEntry(t *tar.Writer, f file, at time.Time) error {
	header := &tar.Header{Name: f.name, Mode: f.mode, Uid: f.uid, Gid: f.uid, ModTime: at, Format: tar.FormatPAX}
	if strings.HasSuffix(f.name, "/") {
		header.Typeflag = tar.TypeDir
		return t.WriteHeader(header)
	}
	header.Typeflag = tar.TypeReg
	content := []byte(f.text)
	if f.path != "" {
		b, err := os.ReadFile(f.path)
		if err != nil {
			return err
		}
		content = b
	}
	header.Size = int64(len(content))
	if err := t.WriteHeader(header); err != nil {
		return err
	}
	_, err := t.Write(content)
	return err
}

// sums is the name of the file of checksums.
const sums = "SHA256SUMS"

// checksums writes the checksums of all files of the release, in the form of sha256sum.
func (r *release) checksums() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return fmt.Errorf("checksums: %w", err)
	}
	var b strings.Builder
	for _, e := range entries {
		sum, err := sumOf(filepath.Join(r.out, e.Name()))
		if err != nil {
			return fmt.Errorf("checksums: %w", err)
		}
		fmt.Fprintf(&b, "%x  %s\n", sum, e.Name())
	}
	if err := os.WriteFile(filepath.Join(r.out, sums), []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("checksums: %w", err)
	}
	r.done(sums)
	return nil
}

func sumOf(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}
