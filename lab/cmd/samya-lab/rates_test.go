package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/samya-db/samya/internal/buildtest"
	ratepeers "github.com/samya-db/samya/lab/peers"
	"github.com/samya-db/samya/lab/ratelab"
	"github.com/samya-db/samya/lab/rls"
	"github.com/samya-db/samya/lab/transports"
)

// TestMain lets this test program be the bare server of rls, and a server of transports.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == rls.EchoCommand || os.Args[1] == transports.ServeCommand) {
		main()
	}
	os.Exit(m.Run())
}

func TestRatesUsage(t *testing.T) {
	for name, args := range map[string][]string{
		"no samya":           {"rates", "--samya", filepath.Join(t.TempDir(), "none")},
		"no peer":            {"rates", "--samya", os.Args[0], "--ratelimit", filepath.Join(t.TempDir(), "none")},
		"no time":            {"rates", "--samya", os.Args[0], "--peer=false", "--duration", "1ms"},
		"far away":           {"rates", "--samya", os.Args[0], "--peer=false", "--round-trip", "1h"},
		"no phase":           {"rates", "--samya", os.Args[0], "--peer=false", "--busy", "0s"},
		"no rounds":          {"rls", "--samya", os.Args[0], "--peer=false", "--rounds", "0"},
		"no callers":         {"rls", "--samya", os.Args[0], "--peer=false", "--callers", "0"},
		"no time of a round": {"rls", "--samya", os.Args[0], "--peer=false", "--duration", "1ms"},
	} {
		if code, _, stderr := runLab(t, args...); code != exitUsage || stderr == "" {
			t.Errorf("%s: exit status %d, %q; want %d", name, code, stderr, exitUsage)
		}
	}
}

// peer has a command measure the peer if it is there.
func peer(t *testing.T) []string {
	t.Helper()
	bin, err := filepath.Abs("../../../bin/ratelimit")
	if err == nil {
		err = ratepeers.Installed(bin)
	}
	if err != nil {
		t.Log("without the peer:", err)
		return []string{"--peer=false"}
	}
	return []string{"--ratelimit", bin}
}

// TestRates runs five sites for moments: samya exceeds no bound, and uses its limits.
func TestRates(t *testing.T) {
	if testing.Short() {
		t.Skip("five sites under load")
	}
	dir := compareDir(t)
	bin, err := buildtest.Samya(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := runLab(t, append([]string{
		"rates", "--samya", bin, "--dir", dir, "--duration", "8s", "--calm", "1s", "--busy", "7s", "--move", "2s", "--json",
	}, peer(t)...)...)
	if code != exitOK {
		t.Fatalf("exit status %d: %s\n%s", code, stderr, stdout)
	}
	var r ratelab.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Rows {
		t.Logf("%+v", row)
		if row.Granted == 0 || row.Offered < row.Granted || row.Over != 0 || row.Failed > row.Offered/10 {
			t.Errorf("%s, %v: %d granted of %d, %d over the bound, %d failed", row.System, &row.Quota, row.Granted, row.Offered, row.Over, row.Failed)
		}
		// Demand has just begun, and the machine may be busy.
		if row.Measured > 0 && (row.Used < .5 || row.Used > 1.2) {
			t.Errorf("%s, %v: used %.3f of the limit", row.System, &row.Quota, row.Used)
		}
	}

	code, stdout, stderr = runLab(t, append([]string{
		"rls", "--samya", bin, "--dir", dir, "--rounds", "2", "--duration", "300ms", "--warmup", "100ms", "--json",
	}, peer(t)...)...)
	if code != exitOK {
		t.Fatalf("exit status %d: %s\n%s", code, stderr, stdout)
	}
	var decisions rls.Report
	if err := json.Unmarshal([]byte(stdout), &decisions); err != nil {
		t.Fatal(err)
	}
	if len(decisions.Rows) < 2 {
		t.Error(stdout)
	}
	for _, row := range decisions.Rows {
		if row.Rate <= 0 || row.P50 <= 0 || row.P99 < row.P50 {
			t.Errorf("%+v", row)
		}
	}
}
