package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestMember(t *testing.T) {
	s := newShell(t)
	list := func(more string) string {
		return "NAME  STATE   REGION   ADDRESS         HEALTH       HEIR  WAITS FOR\n" +
			"eu    member  eu-west  127.0.0.1:7002  unreachable  -     -\n" +
			"us    member  us-east  127.0.0.1:7001  serving      -     -\n" + more
	}
	s.expect("member list", exitOK, list("\nversion 1, as seen by site/us\n"))
	s.expect("member add west --no-wait", exitOK, "west: joining, waits for the site to start, with an address to join\n")
	_, told, _ := s.run("member add west")
	if want := regexp.MustCompile(`^west waits for the site to start, with an address to join \(\d+s\)
west waits for eu to hear of it \(\d+s\)
west is a member
$`); !want.MatchString(told) {
		t.Errorf("the progress is %q", told)
	}
	s.expect("member list", exitOK, list("west  member  -        -               serving      -     -\n\nversion 2, as seen by site/us\n"))
	// It goes on where it was.
	s.expect("member add west --json", exitOK, `{
  "name": "west",
  "state": "member",
  "knows": true,
  "region": "",
  "address": "",
  "health": "serving",
  "waits_for": ""
}
`)
	code, stdout, stderr := s.run("member add never --timeout 1ms")
	if code != exitFailed || !strings.Contains(stderr, "after 1ms never still waits for ") || !strings.Contains(stderr, "samya member add never") {
		t.Errorf("exit status %d, %q, %q", code, stdout, stderr)
	}
	s.expect("member add US", exitUsage, "samya: name: 'U' at position 1, allowed are lower-case letters, digits and '-'\n  see samya member add --help\n")
}

// progress checks what a command prints; the times in it are left out.
func (s *shell) progress(args, want string) {
	s.t.Helper()
	code, stdout, stderr := s.run(args)
	if got := regexp.MustCompile(` \(\d+s\)`).ReplaceAllString(stdout, ""); code != exitOK || got != want {
		s.t.Errorf("%s: exit status %d, %s%s", args, code, got, stderr)
	}
}

// TestMemberDrain: a drain waits for another change, tells what the site waits for until it
// has left, and goes on when it is repeated.
func TestMemberDrain(t *testing.T) {
	s := newShell(t)
	s.manager.Changing = 1
	s.expect("member drain eu --heir us --no-wait", exitOK, "eu waits for 12 entities have to adopt the new voters of the last change first; nothing was done (0s)\n"+
		"eu: draining, waits for the site to hear that it drains\n")
	s.expect("member list", exitOK, "NAME  STATE     REGION   ADDRESS         HEALTH       HEIR  WAITS FOR\n"+
		"eu    draining  eu-west  127.0.0.1:7002  unreachable  us    213 entities to be handed over to us\n"+
		"us    member    us-east  127.0.0.1:7001  serving      -     -\n\nversion 2, as seen by site/us\n")
	s.progress("member drain eu --heir west", `eu drains already, and us takes over
eu waits for requests of the last 4m10s to be forgotten
eu has left; its process may be stopped, and its data removed
`)
	s.progress("member drain eu", "eu has left; its process may be stopped, and its data removed\n")
	s.expect("member drain eu --json", exitOK, `{
  "name": "eu",
  "state": "gone",
  "knows": true,
  "region": "eu-west",
  "address": "127.0.0.1:7002",
  "health": "unknown",
  "waits_for": "",
  "heir": "us"
}
`)
	if code, _, stderr := s.run("member add eu"); code != exitFailed || !strings.Contains(stderr, "eu has left the cluster") || !strings.Contains(stderr, "choose another name") {
		t.Errorf("exit status %d, %s", code, stderr)
	}
}

// TestAStaleListOfMembers: a site that has not heard of the drain does not end the wait.
func TestAStaleListOfMembers(t *testing.T) {
	s := newShell(t)
	s.manager.Stale = 1
	s.run("member list")
	s.progress("member drain eu", `eu waits for site/us to hear of the change
eu waits for 213 entities to be handed over to us
eu waits for requests of the last 4m10s to be forgotten
eu has left; its process may be stopped, and its data removed
`)
}

// TestMemberDrainEnds: a drain can be ended, and who waits for it is told.
func TestMemberDrainEnds(t *testing.T) {
	s := newShell(t)
	code, _, stderr := s.run("member drain eu --timeout 1ms")
	if code != exitFailed || !strings.Contains(stderr, "after 1ms eu still waits for ") || !strings.Contains(stderr, "wait again with: samya member drain eu") {
		t.Errorf("exit status %d, %s", code, stderr)
	}
	s.progress("member drain eu --cancel", "eu is a member\n")
	s.expect("member drain eu --cancel --no-wait", exitOK, "eu: member\n")
	s.expect("member drain none", exitNotFound, "samya: drain none: MEMBER_NOT_FOUND: the cluster has no site \"none\"\n  see which there are with: samya member list\n")
	for args, want := range map[string]string{
		"member drain EU":                        "name: ",
		"member drain eu --heir US":              "heir: ",
		"member drain eu --heir us --cancel":     "none of the others can be",
		"member remove US --lost":                "name: ",
		"member replace eu":                      "required flag",
		"member replace eu --by EU":              "by: ",
		"member replace eu --by eu":              "never used twice",
		"member replace none --by west":          "no site none",
		"member remove eu":                       "MEMBER_STATE",
		"member add us --timeout 1s extra thing": "3 arguments",
	} {
		if code, _, stderr := s.run(args); code == exitOK || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit status %d, %s", args, code, stderr)
		}
	}
}

// TestMemberRemove: a seat that was not taken is withdrawn. A site is written off only if
// it does not serve, and only after an answer.
func TestMemberRemove(t *testing.T) {
	s := newShell(t)
	s.expect("member add west --no-wait", exitOK, "west: joining, waits for the site to start, with an address to join\n")
	s.expect("member remove west", exitOK, "west has no seat any more\n")
	if code, _, stderr := s.run("member remove us --lost --yes"); code != exitFailed || !strings.Contains(stderr, "us serves") || !strings.Contains(stderr, "samya member drain us") {
		t.Errorf("exit status %d, %s", code, stderr)
	}
	for _, answer := range []string{"", "no\n"} {
		s.stdin = answer
		if code, _, stderr := s.run("member remove eu --lost"); code != exitFailed || !strings.Contains(stderr, "Nobody ever grants again the tokens that it held") {
			t.Errorf("%q: exit status %d, %s", answer, code, stderr)
		}
	}
	if slices.ContainsFunc(s.manager.Requests(), func(r string) bool { return strings.HasPrefix(r, "DELETE /v1/members/eu") }) {
		t.Error("it was written off without an answer")
	}
	s.stdin = "y\n"
	s.progress("member remove eu --lost", "eu waits for 12 entities to adopt the new voters\neu is written off\n")
	s.stdin = ""
	s.progress("member remove eu --lost", "eu is written off\n")
}

// TestClusterRecover: the survivors go on, and the lost sites are written off. A site that
// serves is not given up, and nobody is without an answer.
func TestClusterRecover(t *testing.T) {
	s := newShell(t)
	const command = "cluster recover --survivors us --lost-sites eu,west --machines-destroyed"
	for args, want := range map[string]string{
		"cluster recover":                        "survivors: missing",
		"cluster recover --survivors us":         "machines-destroyed: missing",
		strings.Replace(command, " us", " U", 1): "survivors: ",
		"cluster recover --survivors eu --lost-sites us --machines-destroyed -y": "us serves, so its machine is not destroyed",
		command: "What only they have decided is lost",
	} {
		s.stdin = "no\n"
		if code, _, stderr := s.run(args); code == exitOK || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit status %d, %s, want %q", args, code, stderr, want)
		}
	}
	if slices.ContainsFunc(s.manager.Requests(), func(r string) bool { return strings.Contains(r, ":recover") }) {
		t.Error("the cluster was recovered")
	}
	s.stdin = ""
	s.expect("member add west --no-wait", exitOK, "west: joining, waits for the site to start, with an address to join\n")
	s.progress(command+" --yes", `us decide without eu, west
eu waits for 12 entities to adopt the new voters
eu is written off
west waits for 12 entities to adopt the new voters
west is written off
the cluster goes on with us; add sites with samya member add, as one more loss may stop it again
`)
	s.progress(command+" --yes", `us decide without eu, west
the cluster goes on with us; add sites with samya member add, as one more loss may stop it again
`)
}

// TestMemberReplace: a site is replaced in steps, and a repeat goes on with the next.
func TestMemberReplace(t *testing.T) {
	s := newShell(t)
	s.progress("member replace eu --by west", `west waits for the site to start, with an address to join
west waits for eu to hear of it
west is a member
eu waits for 213 entities to be handed over to west
eu waits for requests of the last 4m10s to be forgotten
eu has left
west has replaced eu
`)
	s.progress("member replace eu --by west", "west is a member\neu has left\nwest has replaced eu\n")
	code, stdout, stderr := s.run("member replace eu --by west --json")
	var got replaced
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitOK || got.Old.State != "gone" || got.Old.Heir != "west" || got.New.State != "member" {
		t.Errorf("exit status %d, %v: %s%s", code, err, stdout, stderr)
	}
	if code, _, stderr := s.run("member replace us --by eu"); code != exitFailed || !strings.Contains(stderr, "choose another name") {
		t.Errorf("exit status %d, %s", code, stderr)
	}
}

// TestMemberReplaceLost: what is lost is written off before another site is added.
func TestMemberReplaceLost(t *testing.T) {
	s := newShell(t)
	code, _, stderr := s.run("member replace eu --by west --lost --yes --timeout 1ms")
	if code != exitFailed || !strings.Contains(stderr, "samya member replace eu --by west --lost") {
		t.Errorf("exit status %d, %s", code, stderr)
	}
	s.progress("member replace eu --by west --lost", `eu is written off
west waits for the site to start, with an address to join
west waits for eu to hear of it
west is a member
west has replaced eu
`)
}
