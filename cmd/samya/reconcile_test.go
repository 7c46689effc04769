package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/cutid"
	"github.com/samya-db/samya/internal/httpapi"
)

// TestEntityReconcile: a cut, then a count for it; the cut counts once.
func TestEntityReconcile(t *testing.T) {
	s := newShell(t)
	s.expect("acquire acme/vm 30", exitOK, "acquired 30 of acme/vm at us; 4970 left there\n")
	cut := (&cutid.Cut{Entity: "acme/vm", Generation: 1, Version: 1, Counted: 30}).String()
	s.expect("entity reconcile acme/vm", exitOK, `NAME     IN USE  LEASED  WRITTEN OFF  VERSION
acme/vm  30      0       0            1

Begun  2023-11-14 22:13:20.000 UTC
Ended  2023-11-14 22:13:20.250 UTC

Count now what was in use of acme/vm at any moment of this cut, leases included, then run
  samya entity reconcile acme/vm --in-use COUNT --cut `+cut+`
`)
	if n := s.manager.Acquired("acme/vm"); n != 30 {
		t.Errorf("a cut left %d out", n)
	}
	s.expect("acquire acme/vm 5", exitOK, "acquired 5 of acme/vm at us; 4965 left there\n")
	s.expect("entity reconcile acme/vm --in-use 18 --cut "+cut, exitOK, "12 tokens of acme/vm are back (version 2)\n")
	if n := s.manager.Acquired("acme/vm"); n != 23 {
		t.Errorf("%d are out", n)
	}
	s.expect("entity reconcile acme/vm --in-use 18 --cut "+cut, exitFailed,
		"samya: reconcile acme/vm: VERSION_MISMATCH: the cut does not hold any more\n"+
			"  nothing was done; make another cut and count anew: samya entity reconcile acme/vm\n")
	s.expect("entity reconcile acme/vm --in-use 23 --still", exitOK, "the books of acme/vm were right (version 3)\n")
	s.manager.Missing = []string{"eu"}
	s.expect("entity reconcile acme/vm --in-use 30 --still", exitOK,
		"7 more tokens of acme/vm are counted as in use (version 4)\nUntil all sites have heard of this limit, it may be exceeded by 7 at most.\n")
	code, stdout, _ := s.run("entity reconcile acme/vm --in-use 30 --still --json")
	var told httpapi.Reconciled
	if err := json.Unmarshal([]byte(stdout), &told); err != nil || code != exitOK || told.Version != 5 || told.Returned != 0 {
		t.Errorf("exit status %d, %v in %s", code, err, stdout)
	}
	code, stdout, _ = s.run("entity reconcile acme/vm --json")
	var asked httpapi.Cut
	if err := json.Unmarshal([]byte(stdout), &asked); err != nil || code != exitOK || asked.InUse != 30 || asked.Cut == "" {
		t.Errorf("exit status %d, %v in %s", code, err, stdout)
	}
}

// TestEntityReconcileInATree: a cut names the entities that are left out, and those that
// follow.
func TestEntityReconcileInATree(t *testing.T) {
	s := newShell(t)
	s.run("entity create acme/vm/eu --limit 5 --parent acme/vm")
	for name, want := range map[string]string{
		"acme/vm":    "Count without the 1 entities below it: reconcile those by themselves, and acme/vm follows.\n",
		"acme/vm/eu": "The entities above, from acme/vm up, follow.\n",
	} {
		if code, stdout, stderr := s.run("entity reconcile " + name); code != exitOK || !strings.HasSuffix(stdout, want) {
			t.Errorf("%s: exit status %d, %s%s", name, code, stdout, stderr)
		}
	}
}

// TestEntityReconcileUsage: a count needs a cut or a word that nothing moves, and a
// mistyped cut is refused here.
func TestEntityReconcileUsage(t *testing.T) {
	s := newShell(t)
	good := (&cutid.Cut{Entity: "acme/vm", Generation: 1, Version: 1}).String()
	for line, want := range map[string]string{
		"--in-use 3":                           "--cut",
		"--in-use 3 --still --cut " + good:     "--cut",
		"--cut " + good:                        "--in-use is missing",
		"--still":                              "--in-use is missing",
		"--request-id r":                       "--in-use is missing",
		"--in-use 3 --cut " + good + "0":       "mistyped",
		"--in-use -3 --still":                  "in-use",
		"--in-use 3 --still --request-id \x00": "request-id",
	} {
		before := len(s.manager.Requests())
		if code, _, stderr := s.run("entity reconcile acme/vm " + line); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit status %d, %s", line, code, stderr)
		}
		if len(s.manager.Requests()) != before {
			t.Errorf("%s: something was asked for", line)
		}
	}
	s.expect("entity reconcile zoo", exitNotFound, "samya: make a cut of zoo: ENTITY_NOT_FOUND: no entity \"zoo\"\n"+
		"  create it with: samya entity create zoo --limit N\n  or see which there are with: samya entity list\n")
}
