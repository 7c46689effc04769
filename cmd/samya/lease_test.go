package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/httpapi"
)

func TestLeaseCommands(t *testing.T) {
	s := newShell(t)
	s.expect("acquire acme/vm 3 --ttl 30s --holder job-7 --request-id one", exitOK,
		"acquired 3 of acme/vm at us; 4997 left there\nlease us/one ends in 30s\n")
	s.expect("acquire acme/vm 3 --dry-run", exitOK, "3 of acme/vm would be granted at us; 4994 left there\n")
	s.expect("lease list", exitOK, "NAME    ENTITY   TOKENS  REMAINING  HOLDER\nus/one  acme/vm  3       30s        job-7\n"+
		"Site eu did not answer; its leases are missing.\n")
	s.expect("lease renew us/one --ttl 1m", exitOK, "lease us/one of 3 of acme/vm ends in 1m0s\n")
	s.expect("lease commit us/one --tokens 2", exitOK, "kept 2 of lease us/one, gave 1 back\n")
	s.expect("lease renew us/two", exitNotFound, "samya: renew us/two: LEASE_NOT_FOUND: no lease \"us/two\"\n  see which there are with: samya lease list\n")
	s.expect("release acme/vm 2 --lease eu/one", exitOK,
		"released 2 of acme/vm at us; 4999 left there\nit is counted once other sites have been asked\n")
	code, stdout, _ := s.run("lease list --holder nobody --json")
	var page httpapi.LeasePage
	if err := json.Unmarshal([]byte(stdout), &page); err != nil || code != exitOK || len(page.Leases) != 0 || len(page.Missing) != 1 {
		t.Errorf("exit status %d, %v: %s", code, err, stdout)
	}
	var seen httpapi.Request
	s.manager.Intercept = func(_ string, r httpapi.Request, execute func() error) error {
		seen = r
		return execute()
	}
	if code, _, stderr := s.run("lease void us/one --entity acme/vm"); code != exitOK || seen.Lease != "us/one" || seen.Tokens != 0 {
		t.Errorf("exit status %d, sent %+v: %s", code, seen, stderr)
	}
}

func TestMoveUsage(t *testing.T) {
	s := newShell(t)
	for line, want := range map[string]string{
		"acquire acme/vm 3 --min-tokens 4":                      "min-tokens: 4, at most 3",
		"acquire acme/vm 3 --ttl 1ms":                           "ttl: 1ms, at least 1s",
		"acquire acme/vm 3 --holder x":                          "holder: only with --ttl",
		"acquire acme/vm 3 --attempt 2":                         "not-after: missing",
		"acquire acme/vm 3 --attempt 2 --not-after soon":        "not-after: must be a time",
		"acquire acme/vm 3 --attempt 1048576 --not-after soon":  "attempt: 1048576, at most 1048575",
		"release acme/vm 3 --lease x":                           "lease: must be a site's name",
		"release acme/vm 0":                                     "tokens: 0, at least 1",
		"lease renew us/x --ttl 200h":                           "ttl: 200h0m0s, at most 168h",
		"lease commit us/x --tokens -1":                         "tokens: -1, at least 0",
		"lease void us/x":                                       "entity",
		"entity get acme/vm --consistency strong":               "consistency: must be one of local, bounded, exact",
		"entity get acme/vm --consistency bounded --max-age 2h": "max-age: 2h0m0s, at most 1h",
	} {
		if code, _, stderr := s.run(line); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("samya %s: exit status %d: %s", line, code, stderr)
		}
	}
	if n := len(s.manager.Requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// TestUnknownOutcomeTellsTheRepeat: an unknown outcome tells the whole command of a
// repeat.
func TestUnknownOutcomeTellsTheRepeat(t *testing.T) {
	s := newShell(t)
	until := time.Date(2026, 1, 2, 15, 4, 5, 678_000_000, time.UTC)
	s.manager.Intercept = func(_ string, r httpapi.Request, _ func() error) error {
		e := apierr.Unknown(r.RequestID, "eu", nil)
		e.Attempt, e.NotAfter, e.Tried = 2, until, []string{"us", "eu"}
		return e
	}
	repeat := "samya acquire acme/vm 2 --request-id one --min-tokens 1 --ttl 30s --holder h" +
		" --attempt 2 --not-after 2026-01-02T15:04:05.678Z --tried us,eu\n"
	code, _, stderr := s.run("acquire acme/vm 2 --request-id one --min-tokens 1 --ttl 30s --holder h")
	if code != exitUnknown || !strings.HasSuffix(stderr, "find out with: "+repeat) {
		t.Errorf("exit status %d: %s", code, stderr)
	}
	s.manager.Intercept = func(_ string, r httpapi.Request, execute func() error) error {
		if r.Attempt != 2 || !r.NotAfter.Equal(until) || strings.Join(r.Tried, " ") != "us eu" || r.MinTokens != 1 {
			t.Errorf("repeated as %+v", r)
		}
		return execute()
	}
	if code, _, stderr := s.run(strings.TrimSuffix(strings.TrimPrefix(repeat, "samya "), "\n")); code != exitOK {
		t.Errorf("exit status %d: %s", code, stderr)
	}
	// No app manager answers at all: the caller's own time is enough for a repeat.
	broken := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer broken.Close()
	code, _, stderr = s.run("release acme/vm 2 --request-id one --not-after 2026-01-02T15:04:05Z --addr " + broken.URL)
	if code != exitUnknown || !strings.HasSuffix(stderr, "samya release acme/vm 2 --request-id one --attempt 2 --not-after 2026-01-02T15:04:05Z\n") {
		t.Errorf("exit status %d: %s", code, stderr)
	}
}

func TestEntityWatch(t *testing.T) {
	s := newShell(t)
	s.expect("entity watch acme/vm", exitOK, "acme/vm: limit 5000, available 4970, acquired 30 (version 1)\nacme/vm was deleted\n")
	code, stdout, _ := s.run("entity watch acme/vm --resume-token t1 --json")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	var last httpapi.State
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); code != exitOK || len(lines) != 2 || err != nil || !last.Deleted || last.ResumeToken != "t2" {
		t.Errorf("exit status %d, %v: %s", code, err, stdout)
	}
}
