package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestChart: the archive of the chart names its release, and has the content of links.
func TestChart(t *testing.T) {
	r := &release{source: source{dir: "../..", version: "v1.2.3-modified"}, out: t.TempDir(), log: io.Discard}
	if err := r.chart(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(r.out, "samya_v1.2.3-modified.chart.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for archive := tar.NewReader(z); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name] = string(b); h.Typeflag != tar.TypeReg {
			t.Errorf("%s is no file", h.Name)
		}
	}
	if about := files["samya/Chart.yaml"]; !strings.Contains(about, "\nversion: 1.2.3-modified\nappVersion: v1.2.3-modified\n") {
		t.Errorf("the chart is\n%s", about)
	}
	alerts, err := os.ReadFile("../../deploy/monitoring/alerts.yml")
	if err != nil || files["samya/files/alerts.yml"] != string(alerts) {
		t.Errorf("the chart's alerts are others: %v", err)
	}
	for _, name := range []string{"samya/values.yaml", "samya/values.schema.json", "samya/README.md", "samya/templates/sites.yaml", "samya/templates/tests/works.yaml"} {
		if files[name] == "" {
			t.Errorf("no %s, or an empty one", name)
		}
	}
	for name := range files {
		if strings.HasPrefix(name, "samya/ci/") {
			t.Errorf("the chart has %s", name)
		}
	}
	if _, err := released("name: samya\n", "v1.2.3"); err == nil {
		t.Error("a chart without a version gets one")
	}
}
