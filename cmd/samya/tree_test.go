package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/apierr/refuse"
	"github.com/samya-db/samya/internal/httpapi"
)

// TestTreeCommands: entities are put below others, moved, shown and deleted with
// all below them.
func TestTreeCommands(t *testing.T) {
	s := newShell(t)
	s.expect("entity create acme --limit 9000", exitOK, "created acme with limit 9000\n")
	s.expect("entity create acme/team --limit 600 --parent acme", exitOK, "created acme/team with limit 600 below acme\n")
	s.expect("entity move acme/vm --parent acme/team", exitOK, "acme/vm stands below acme/team\n")
	s.expect("entity create zoo --limit 1", exitOK, "created zoo with limit 1\n")
	s.expect("entity tree", exitOK, "NAME         LIMIT\nacme         9000\n  acme/team  600\n    acme/vm  5000\nzoo          1\n")
	s.expect("entity tree acme/team", exitOK, "NAME       LIMIT\nacme/team  600\n  acme/vm  5000\n")
	code, stdout, _ := s.run("entity tree acme --json")
	var tree struct {
		Entities []branch `json:"entities"`
	}
	if err := json.Unmarshal([]byte(stdout), &tree); err != nil || code != exitOK || tree.Entities[0].Below[0].Below[0].Name != "acme/vm" {
		t.Errorf("exit status %d, %v in %s", code, err, stdout)
	}
	if code, stdout, _ = s.run("entity get acme/team"); code != exitOK || !strings.Contains(stdout, "\nStands below acme; entities right below it: 1.\n") {
		t.Errorf("exit status %d: %s", code, stdout)
	}
	s.expect("entity tree none", exitNotFound, "samya: show none: ENTITY_NOT_FOUND: no entity \"none\"\n"+
		"  create it with: samya entity create none --limit N\n  or see which there are with: samya entity list\n")
	s.expect("entity create a --limit 1 --parent none", exitNotFound, "samya: create a: PARENT_NOT_FOUND: no entity \"none\" to stand above \"a\"\n"+
		"  create it with: samya entity create none --limit N\n  or see which there are with: samya entity tree\n")
	s.expect("entity move zoo", exitUsage, "samya: parent: pass either --parent or --top\n  see samya entity move --help\n")
	s.expect("entity move zoo --top --parent acme", exitUsage, "samya: parent: pass either --parent or --top\n  see samya entity move --help\n")
	s.expect("entity move acme/team --top", exitOK, "acme/team stands at the top\n")
	s.expect("entity delete acme/team --yes", exitFailed, "samya: delete acme/team: HAS_CHILDREN: entities stand below \"acme/team\"; delete them first, or all of the subtree at once\n"+
		"  see which with: samya entity tree acme/team; delete all of them at once with: samya entity delete acme/team --subtree\n")
	s.stdin = "y\n"
	code, stdout, stderr := s.run("entity delete acme/team --subtree")
	if code != exitOK || stdout != "deleted acme/team and all below it\n" || !strings.HasPrefix(stderr, "Delete acme/team and all below it?") {
		t.Errorf("exit status %d: %s%s", code, stdout, stderr)
	}
	s.expect("entity tree", exitOK, "NAME  LIMIT\nacme  9000\nzoo   1\n")
}

// TestTornTree: a list of pages that do not fit together shows each entity once.
func TestTornTree(t *testing.T) {
	torn := []httpapi.Entity{
		{Name: "a", Parent: "b"},
		{Name: "b", Parent: "a"},
		{Name: "c", Parent: "gone"},
		{Name: "d", Parent: "c"},
		{Name: "e", Parent: "e"},
		{Name: "f", Parent: "e"},
	}
	tree, _ := treeOf(torn, "")
	seen := map[string]int{}
	var count func([]*branch)
	count = func(bs []*branch) {
		for _, b := range bs {
			seen[b.Name]++
			count(b.Below)
		}
	}
	count(tree)
	for _, e := range torn {
		if seen[e.Name] != 1 {
			t.Errorf("%s is shown %d times", e.Name, seen[e.Name])
		}
	}
}

// TestLackingIsNamed: the hint of a refusal names the entity that lacked tokens.
func TestLackingIsNamed(t *testing.T) {
	s := newShell(t)
	s.manager.Intercept = func(string, httpapi.Request, func() error) error {
		return refuse.NoTokens("acme/vm", "us", 5, 2, 0).LackedBy("acme", 5)
	}
	s.expect("acquire acme/vm 5", exitOutOfTokens, "samya: acquire 5 of acme/vm: OUT_OF_TOKENS: 5 tokens of acme/vm wanted, 2 left of acme\n"+
		"  2 tokens of acme are left at site us; try again later, ask for fewer, or wait longer with --wait\n")
}

// TestExceedsLimit: the hint of a refusal for a limit tells the limit and its entity.
func TestExceedsLimit(t *testing.T) {
	s := newShell(t)
	refusal := refuse.Exceeds("acme/vm", "us", 5, 2)
	s.manager.Intercept = func(string, httpapi.Request, func() error) error { return refusal }
	s.expect("acquire acme/vm 5", exitUsage, "samya: acquire 5 of acme/vm: EXCEEDS_LIMIT: 5 tokens of acme/vm wanted, the limit is 2\n"+
		"  ask for 2 at most, or raise the limit with: samya entity set-limit acme/vm N\n")
	refusal = refusal.LackedBy("acme", 5)
	s.expect("acquire acme/vm 5", exitUsage, "samya: acquire 5 of acme/vm: EXCEEDS_LIMIT: 5 tokens of acme/vm wanted, the limit of acme is 2\n"+
		"  ask for 2 at most, or raise the limit with: samya entity set-limit acme N\n")
}
