package site

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/node"
	"github.com/samya-db/samya/internal/testfuzz"
)

// FuzzPageToken: a token is refused, or it is the name that a page starts behind.
func FuzzPageToken(tf *testing.F) {
	f := testfuzz.On(tf)
	for _, s := range []string{"", "YWNtZS92bQ", "YWNtZS92bQ==", "/w", "YS8v", "a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, token string) {
		after, err := pageToken(token)
		switch {
		case err != nil:
		case token == "" && after == "":
		case name.Entity("page_token", after) != nil:
			t.Fatalf("%q stands for %q", token, after)
		default:
			if again, err := pageToken(base64.RawURLEncoding.EncodeToString([]byte(after))); err != nil || again != after {
				t.Fatalf("%q stands for %q, and that for %q: %v", token, after, again, err)
			}
		}
	})
}

// FuzzMembers: the member set of the command line is refused, or consists of good names.
func FuzzMembers(tf *testing.F) {
	f := testfuzz.On(tf)
	for _, s := range []string{"us", "us,eu", "us,us", ",", "US", "us,-"} {
		f.Add(s, "us")
	}
	f.Fuzz(func(t *testing.T, members, self string) {
		c := Config{
			Config: node.Config{
				Name: self, Region: self, Cluster: "test", GRPC: "127.0.0.1:0", HTTP: "127.0.0.1:0",
				Gossip: node.Gossip{Bind: "127.0.0.1:0"},
			},
			DataDir: t.TempDir(), Members: strings.Split(members, ","),
		}
		if c.Validate() != nil {
			return
		}
		for _, m := range c.Members {
			if err := name.Site("members", m); err != nil {
				t.Fatalf("%q is taken: %v", members, err)
			}
		}
	})
}
