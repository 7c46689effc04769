package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samya-db/samya/lab/ycsb"
)

func TestYCSBUsage(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for args, names := range map[string]string{
		"":                                  "--out",
		"--out DIR --workload G":            `"G"`,
		"--out DIR --records 0":             "records",
		"--out DIR --operations 0":          "--operations",
		"--out DIR --clients 0":             "clients",
		"--out DIR --scan-length 8-2":       "scan length",
		"--out DIR --scan-length few":       "--scan-length",
		"--out DIR --distribution gaussian": "gaussian",
		"--out FULL":                        "not empty",
		"--out DIR extra":                   "no arguments",
	} {
		fields := strings.Fields(strings.NewReplacer("DIR", filepath.Join(t.TempDir(), "new"), "FULL", full).Replace(args))
		if code, _, stderr := runLab(t, append([]string{"ycsb"}, fields...)...); code != exitUsage || !strings.Contains(stderr, names) {
			t.Errorf("%s: exit status %d, %q; want %d naming %s", args, code, stderr, exitUsage, names)
		}
	}
}

// TestYCSB writes a workload twice and reads it back.
func TestYCSB(t *testing.T) {
	dirs := []string{filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")}
	var told written
	for _, dir := range dirs {
		code, stdout, stderr := runLab(t, "ycsb", "--workload", "E", "--records", "500", "--operations", "1003", "--clients", "4",
			"--scan-length", "2-8", "--seed", "9", "--out", dir, "--json")
		if code != exitOK {
			t.Fatalf("exit status %d: %s", code, stderr)
		}
		if err := json.Unmarshal([]byte(stdout), &told); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dirs[0], "*"))
	if err != nil || len(files) != 5 || told.Files != 5 {
		t.Fatalf("%v %v, told %+v", files, err, told)
	}
	lines := map[string]int64{}
	loaded := 0
	for _, file := range files {
		a, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dirs[1], filepath.Base(file)))
		if err != nil || string(a) != string(b) {
			t.Errorf("%s: not the same twice (%v)", file, err)
		}
		r := ycsb.NewReader(strings.NewReader(string(a)), file)
		for {
			op, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(file, "client") {
				lines[op.Kind.String()]++
			} else {
				loaded++
			}
			if op.Kind == ycsb.Scan && (op.Limit < 2 || op.Limit > 8) {
				t.Fatalf("a scan of %d", op.Limit)
			}
		}
	}
	if loaded != 500 || lines["scan"]+lines["write"] != 1003 || lines["scan"] != told.Lines["scan"] || lines["scan"] < 900 {
		t.Errorf("loads %d, %v; told %v", loaded, lines, told.Lines)
	}
}
