// Package golden packs directories as test data, a version after the other, and unpacks
// them. It is for tests only, and refuses directories within directories.
package golden

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Pack writes the files of a directory to a file of its own, which must not exist. The
// same files give the same bytes.
func Pack(to, dir string) (err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("packing: %w", err)
	}
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("packing: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	zip, err := gzip.NewWriterLevel(file, gzip.BestCompression)
	if err != nil {
		return fmt.Errorf("packing: %w", err)
	}
	pack := tar.NewWriter(zip)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err == nil {
			err = pack.WriteHeader(&tar.Header{Name: e.Name(), Mode: 0o600, Size: int64(len(b)), Format: tar.FormatUSTAR})
		}
		if err == nil {
			_, err = pack.Write(b)
		}
		if err != nil {
			return fmt.Errorf("packing %s: %w", e.Name(), err)
		}
	}
	return errors.Join(pack.Close(), zip.Close())
}

// most bounds a file in a package, in bytes.
const most = 64 << 20

// Unpack writes the files of a package into a directory.
func Unpack(dir, from string) (err error) {
	file, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("unpacking: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	zip, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("unpacking %s: %w", from, err)
	}
	pack := tar.NewReader(zip)
	for {
		h, err := pack.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpacking %s: %w", from, err)
		}
		b, err := io.ReadAll(io.LimitReader(pack, most))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(h.Name)), b, 0o600)
		}
		if err != nil {
			return fmt.Errorf("unpacking %s of %s: %w", h.Name, from, err)
		}
	}
}
