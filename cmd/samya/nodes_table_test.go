package main

import (
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/httpapi"
)

// TestMembersWithNodes: a list of members has a column for nodes only if a site has nodes.
func TestMembersWithNodes(t *testing.T) {
	printed := func(members ...httpapi.Member) string {
		var b strings.Builder
		printMembers(&b, httpapi.Members{AnsweredBy: "am", Version: 3, Members: members})
		return b.String()
	}
	eu := httpapi.Member{Name: "eu", State: "member"}
	if got := printed(eu); strings.Contains(got, "NODE") || !strings.HasPrefix(got, "NAME\tSTATE\tREGION\tADDRESS\tHEALTH\tHEIR\tWAITS FOR\neu\tmember\t-\t-\t-\t-\t-\n") {
		t.Errorf("without nodes:\n%s", got)
	}
	us := httpapi.Member{Name: "us", State: "member", Node: "b", Term: 57, Standbys: 1}
	if got := printed(eu, us); !strings.HasPrefix(got, "NAME\tSTATE\tREGION\tADDRESS\tHEALTH\tHEIR\tWAITS FOR\tNODE\neu\tmember\t-\t-\t-\t-\t-\t-\nus\tmember\t-\t-\t-\t-\t-\tb, term 57, 1 standby\n") {
		t.Errorf("with nodes:\n%s", got)
	}
	for standbys, want := range map[uint32]string{0: "a, term 9, no standby", 1: "a, term 9, 1 standby", 2: "a, term 9, 2 standbys"} {
		if got := nodeLine("a", 9, standbys); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
