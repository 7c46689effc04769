package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/site/sitetest"
)

var update = flag.Bool("update", false, "write what the commands of docs/api.md print into it")

const apiDoc = "../../docs/api.md"

// block is a command of docs/api.md with the output that follows it.
var block = regexp.MustCompile("(?s)```sh\n(.*?)```\n(?:\n```(?:json|text)\n(.*?)```\n)?")

// masks replace the parts of an output that differ from run to run.
var masks = []struct{ pattern, by string }{
	{`\b[0-9A-HJKMNP-TV-Z]{26}\b`, "ID"},
	{`127\.0\.0\.1:[0-9]+`, "ADDRESS"},
	{`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z`, "TIME"},
	{`("(?:age_ms|remaining_ms|round_trip_ms|retry_after_ms|redistributions|transfers)": )[0-9.]+`, "${1}0"},
	{`("(?:age|remaining|roundTrip|redistributions|transfers)": )"[0-9.]+s?"`, `${1}"0"`},
	{`("(?:resume_token|resumeToken)": )"[^"]*"`, `${1}"TOKEN"`},
	{`("build": )"[^"]*"`, `${1}"BUILD"`},
	{`("moves": )\{[^{}]*\}`, `${1}{}`},
	// The refusal of 150 seats makes the site ask the other site for its seats, in its
	// own time.
	{`("request_?[iI]d": "lot-2(?:-back)?",\s+"site": "us",\s+"left": )"?[0-9]+"?`, `${1}0`},
}

func masked(s string) string {
	for _, m := range masks {
		s = regexp.MustCompile(m.pattern).ReplaceAllString(s, m.by)
	}
	return s
}

// pretty lays out each line that is JSON, and leaves other lines as they are.
func pretty(out string) string {
	if json.Valid([]byte(out)) && strings.HasPrefix(out, "{") {
		out = strings.TrimSpace(out)
	}
	var b strings.Builder
	for dec := json.NewDecoder(strings.NewReader(out)); ; {
		var raw json.RawMessage
		if dec.Decode(&raw) != nil {
			break
		}
		var laid bytes.Buffer
		if raw[0] != '{' || json.Indent(&laid, raw, "", "  ") != nil {
			return out
		}
		b.Write(append(laid.Bytes(), '\n'))
	}
	if b.Len() == 0 {
		return out
	}
	return b.String()
}

// TestAPIDoc runs the commands of docs/api.md in order against a cluster of real
// processes. Their outputs must match the page.
func TestAPIDoc(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		missing(t, "needs curl")
	}
	tools, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	// The lines build on each other: without grpcurl, the lines with curl print other
	// results.
	if _, err := os.Stat(filepath.Join(tools, "grpcurl")); err != nil {
		missing(t, "needs bin/grpcurl: make bin/grpcurl builds it")
	}
	dir := t.TempDir()
	cluster, err := proc.Start(t.Context(), proc.Config{
		Bin: samyaIn(t, dir), Dir: dir, Sites: []string{"eu", "us"}, AppManagers: []string{"us"},
		// Without a given distance, the measured distance decides which site is the
		// nearest.
		Latency: "samya",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	awaitSites(t, cluster.AppManager(0).HTTP, 2)
	page, err := os.ReadFile(apiDoc)
	if err != nil {
		t.Fatal(err)
	}
	ran := map[string]int{}
	now := block.ReplaceAllStringFunc(string(page), func(whole string) string {
		m := block.FindStringSubmatch(whole)
		command, want := m[1], m[2]
		program := "curl"
		if strings.Contains(command, "grpcurl") {
			program = "grpcurl"
		}
		ran[program]++
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, "bash", "-c", command)
		am := cluster.AppManager(0)
		cmd.Env = append(os.Environ(), "HTTP=http://"+am.HTTP, "GRPC="+am.GRPC, "PATH="+tools+":"+os.Getenv("PATH"))
		cmd.WaitDelay = time.Second
		// grpcurl exits with the status of the call; the page shows calls that fail.
		raw, _ := cmd.CombinedOutput()
		got := pretty(string(raw))
		if masked(got) != masked(want) && !*update {
			t.Errorf("%s\nprints\n%s\nthe page says\n%s", command, got, want)
		}
		kind := "text"
		if strings.HasPrefix(got, "{") {
			kind = "json"
		}
		return "```sh\n" + command + "```\n\n```" + kind + "\n" + got + "```\n"
	})
	if ran["curl"] < 20 || ran["grpcurl"] < 12 {
		t.Errorf("ran %v; the test does not see the page's commands", ran)
	}
	if *update {
		if err := os.WriteFile(apiDoc, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// awaitSites waits until an app manager finds so many sites serving.
func awaitSites(t *testing.T, addr string, sites int) {
	t.Helper()
	client, err := httpapi.New(addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	sitetest.Eventually(t, "all sites are serving", func() error {
		found, err := client.ListSites(t.Context())
		if err != nil {
			return err
		}
		serving := 0
		for _, s := range found.Sites {
			if s.Health == "serving" {
				serving++
			}
		}
		if serving < sites {
			return fmt.Errorf("%d of %d sites are serving", serving, sites)
		}
		return nil
	})
}
