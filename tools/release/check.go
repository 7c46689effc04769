package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// check builds the commit twice and compares the files. The second build has another
// directory, another time zone, an empty cache of compiled packages and other variables
// of the environment.
func (r *release) check(ctx context.Context) error {
	work, err := os.MkdirTemp("", "samya-check-")
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }() // in the directory of temporary files
	first, second := *r, *r
	first.log, second.log = io.Discard, io.Discard
	first.out, second.out = filepath.Join(work, "out-a"), filepath.Join(work, "out-b")
	second.env = append(slices.Clone(r.env),
		"GOCACHE="+filepath.Join(work, "cache"), "TMPDIR="+work, "TZ=Asia/Tokyo", "LC_ALL=C", "USER=somebody")
	for dir, b := range map[string]*release{"a": &first, "a-directory-with-a-much-longer-name/samya": &second} {
		if b.source, err = r.source.export(ctx, filepath.Join(work, dir)); err != nil {
			return err
		}
		if err := b.build(ctx); err != nil {
			return err
		}
	}
	n, err := compare(first.out, second.out)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(r.log, "%d files are the same, byte for byte, from two builds of %s\n", n, r.source.version)
	return err
}

// errDiffers says that two builds of the same commit differ.
var errDiffers = errors.New("the two builds differ")

// compare compares two directories of files, and returns the number of files.
func compare(a, b string) (int, error) {
	names := func(dir string) (all []string, err error) {
		entries, err := os.ReadDir(dir)
		for _, e := range entries {
			all = append(all, e.Name())
		}
		return all, err
	}
	inA, errA := names(a)
	inB, errB := names(b)
	if err := errors.Join(errA, errB); err != nil {
		return 0, fmt.Errorf("compare: %w", err)
	}
	if !slices.Equal(inA, inB) || len(inA) == 0 {
		return 0, fmt.Errorf("%w: %q and %q", errDiffers, inA, inB)
	}
	var errs []error
	for _, name := range inA {
		x, errX := os.ReadFile(filepath.Join(a, name))
		y, errY := os.ReadFile(filepath.Join(b, name))
		if err := errors.Join(errX, errY); err != nil {
			return 0, fmt.Errorf("compare: %w", err)
		}
		if !bytes.Equal(x, y) {
			errs = append(errs, fmt.Errorf("%w: %s, from byte %d on", errDiffers, name, firstDifference(x, y)))
		}
	}
	return len(inA), errors.Join(errs...)
}

func firstDifference(x, y []byte) int {
	n := min(len(x), len(y))
	for i := range n {
		if x[i] != y[i] {
			return i
		}
	}
	return n
}
