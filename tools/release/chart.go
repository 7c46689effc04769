package main

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// chartDir is the directory of the Helm chart in the repository.
const chartDir = "deploy/helm/samya"

// chart writes the archive of the Helm chart, with the release's version in the place of
// none.
func (r *release) chart() error {
	files, err := chartFiles(filepath.Join(r.source.dir, chartDir), r.source.version)
	if err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	name := "samya_" + r.source.version + ".chart.tgz"
	err = create(filepath.Join(r.out, name), func(w io.Writer) error {
		z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
		if err != nil {
			return err
		}
		// Directories have no place in the archive of a chart.
		if err := writeTar(z, files, r.source.time); err != nil {
			return err
		}
		return z.Close()
	})
	if err == nil {
		r.done(name)
	}
	return err
}

// chartFiles returns the files of the chart. Links lead to files that the chart shares with
// others; the archive has their content. Values of tests stay behind.
func chartFiles(dir, version string) ([]file, error) {
	var files []file
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if inside == "ci" {
				return fs.SkipDir
			}
			return nil
		}
		f := file{name: "samya/" + filepath.ToSlash(inside), path: path, mode: 0o644}
		if inside == "Chart.yaml" {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if f.text, err = released(string(b), version); err != nil {
				return err
			}
			f.path = ""
		}
		files = append(files, f)
		return nil
	})
	return files, err
}

// released returns a Chart.yaml with a release's version in the place of none.
func released(text, version string) (string, error) {
	for none, own := range map[string]string{
		"\nversion: 0.0.0\n":     "\nversion: " + strings.TrimPrefix(version, "v") + "\n",
		"\nappVersion: v0.0.0\n": "\nappVersion: " + version + "\n",
	} {
		if strings.Count(text, none) != 1 {
			return "", errors.New("Chart.yaml has no line" + strings.TrimSuffix(none, "\n"))
		}
		text = strings.Replace(text, none, own, 1)
	}
	return text, nil
}
