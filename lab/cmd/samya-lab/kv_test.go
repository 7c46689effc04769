package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samya-db/samya/lab/kvlab"
)

func TestKVUsage(t *testing.T) {
	for args, names := range map[string]string{
		"":                                    "--workload-dir",
		"--ycsb A --workload-dir x":           "exactly one",
		"--ycsb G":                            `"G"`,
		"--ycsb A --strategy firm":            "firm",
		"--ycsb A --policy whim":              "whim",
		"--ycsb A --backend paper":            "paper",
		"--ycsb A --partitions 0":             "--partitions",
		"--ycsb A --value-size -1":            "--value-size",
		"--ycsb A --duration -1s":             "--duration",
		"--ycsb A --operations -1":            "--operations",
		"--ycsb A --tick 0s":                  "--tick",
		"--ycsb A --records 0":                "records",
		"--ycsb A --clients 0":                "clients",
		"--ycsb A --share -1 --operations 8":  "Share",
		"--ycsb A --window -1 --operations 8": "indow",
		"--ycsb E --scan-length 0-8":          "scan length",
		"--bench --cost":                      "one of them",
		"--bench --rounds 0":                  "--rounds",
		"--ycsb A now":                        "no arguments",
	} {
		code, _, stderr := runLab(t, append([]string{"kv"}, strings.Fields(args)...)...)
		if code != exitUsage || !strings.Contains(stderr, names) {
			t.Errorf("%s: exit status %d, %q; want %d naming %s", args, code, stderr, exitUsage, names)
		}
	}
}

// TestKV runs a workload from its files and from memory, on stores of all strategies.
func TestKV(t *testing.T) {
	dir := t.TempDir()
	load := filepath.Join(dir, "load")
	if code, _, stderr := runLab(t, "ycsb", "--workload", "E", "--records", "300", "--operations", "2000", "--clients", "3",
		"--scan-length", "2-8", "--out", load); code != exitOK {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	table, picture, profile := filepath.Join(dir, "run.csv"), filepath.Join(dir, "run.svg"), filepath.Join(dir, "run.pprof")
	for _, args := range []string{
		"--strategy soft --workload-dir " + load + " --csv " + table + " --svg " + picture + " --profile " + profile,
		"--strategy hard --backend hash --policy base --interval 500 --ycsb A --operations 2000 --records 300",
		"--strategy threaded --policy round-robin --ycsb D --operations 2000 --records 300",
		"--strategy hard_threaded --policy single --ycsb F --operations 2000 --records 300",
		"--strategy engine --backend bbolt --ycsb E --operations 2000 --records 300 --scan-length 2-8 --value-size 64",
	} {
		code, stdout, stderr := runLab(t, append([]string{"kv", "--json", "--every", "1ms"}, strings.Fields(args)...)...)
		if code != exitOK {
			t.Errorf("%s: exit status %d: %s", args, code, stderr)
			continue
		}
		var r kvlab.Report
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || strings.Count(stdout, "\n") != 1 {
			t.Fatalf("%s: %v\n%s", args, err, stdout)
		}
		if r.Count != 2000 || r.Preloaded != 300 || r.Keys < 300 || r.Rate <= 0 {
			t.Errorf("%s: %+v", args, r)
		}
	}
	f, err := os.Open(table)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) < 3 || rows[0][0] != "elapsed" || rows[len(rows)-1][1] != "2000" {
		t.Errorf("%v: %v", err, rows)
	}
	for _, name := range []string{picture, profile} {
		if info, err := os.Stat(name); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestKVFileErrors checks that a bad line is told with its file and number.
func TestKVFileErrors(t *testing.T) {
	dir := t.TempDir()
	if code, _, stderr := runLab(t, "kv", "--workload-dir", dir); code != exitFailed || !strings.Contains(stderr, dir) {
		t.Errorf("an empty folder: exit status %d: %s", code, stderr)
	}
	name := filepath.Join(dir, "one.csv")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := runLab(t, "kv", "--workload-dir", dir); code != exitFailed || stdout != "" || !strings.Contains(stderr, dir+": no operation") {
		t.Errorf("files without operations: exit status %d: %s%s", code, stdout, stderr)
	}
	if err := os.WriteFile(name, []byte("1,a\n0,a\n2,a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := runLab(t, "kv", "--workload-dir", dir); code != exitFailed || !strings.Contains(stderr, name+":3: ") {
		t.Errorf("a bad line: exit status %d: %s", code, stderr)
	}
}
