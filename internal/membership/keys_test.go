package membership

import (
	"bytes"
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
)

// TestHowManyKeys: a file may hold 16 keys, of each length that AES has, and no more.
func TestHowManyKeys(t *testing.T) {
	var keys []string
	for i := range maxKeys + 1 {
		keys = append(keys, strings.Repeat(string(rune('a'+i)), 16+i%3*8))
	}
	got, err := ReadKeys(keyFile(t, keys[:maxKeys]...))
	if err != nil || len(got) != 16 || string(got[1]) != keys[1] {
		t.Errorf("%d keys, %v", len(got), err)
	}
	if got, err := ReadKeys(keyFile(t, keys...)); err == nil {
		t.Errorf("%d keys are taken", len(got))
	}
}

// TestNoPartOfAKeyIsTold: an error about a file of keys names the line, and no part of a
// key.
func TestNoPartOfAKeyIsTold(t *testing.T) {
	good := base64.StdEncoding.EncodeToString(make([]byte, 16))
	short := base64.StdEncoding.EncodeToString([]byte("supersecret"))
	for text, secret := range map[string]string{
		"# x\n" + good + "\nsupersecret%\n": "supersecret",
		"\n" + good + "\n" + short + "\n":   "supersecret",
		good + "\n\n" + short + "\n":        short,
	} {
		path := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadKeys(path); err == nil || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), path+": line 3:") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestAllOldKeysGo: after an exchange the file's keys alone are in use, however many
// there were before.
func TestAllOldKeysGo(t *testing.T) {
	key := func(i int) []byte { return bytes.Repeat([]byte{byte('a' + i)}, 16) }
	ring, err := memberlist.NewKeyring([][]byte{key(0), key(1), key(2), key(3)}, key(0))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range [][][]byte{{key(4)}, {key(5), key(4), key(6), key(7)}, {key(7), key(5)}} {
		if err := exchange(ring, want); err != nil {
			t.Fatal(err)
		}
		got := slices.Clone(ring.GetKeys())
		if !bytes.Equal(got[0], want[0]) {
			t.Errorf("%q encrypts, want %q", got[0], want[0])
		}
		slices.SortFunc(got, bytes.Compare)
		slices.SortFunc(want, bytes.Compare)
		if !slices.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("the keys are %q, want %q", got, want)
		}
	}
}

// TestStartWithKeys: the first key of the file encrypts and all are accepted; the file is
// followed from then on. Without a file in order nothing starts.
func TestStartWithKeys(t *testing.T) {
	const first, second = "zzzzzzzzzzzzzzzz", "aaaaaaaaaaaaaaaa"
	us := start(t, Config{Self: site("us"), KeyFile: keyFile(t, first, second)})
	if keys := us.keyring.GetKeys(); len(keys) != 2 || string(keys[0]) != first || string(keys[1]) != second {
		t.Errorf("the keys are %q", keys)
	}
	await(t, "the file is not followed", func() bool {
		var all bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&all, 2); err != nil {
			t.Fatal(err)
		}
		return strings.Contains(all.String(), ".followKeys(")
	})
	for what, path := range map[string]string{"no file": filepath.Join(t.TempDir(), "none"), "a short key": keyFile(t, "short")} {
		if m, err := Start(context.Background(), Config{Self: site("eu"), Bind: "127.0.0.1:0", KeyFile: path}); err == nil {
			t.Errorf("%s: it starts", what)
			_ = m.Close()
		}
	}
}

// TestWhoHasNoKeyStaysOut: a node that gossips in clear is not heard by a node with a
// key, and does not hear it.
func TestWhoHasNoKeyStaysOut(t *testing.T) {
	lines := make(chan string, 10_000)
	us := start(t, Config{Self: site("us"), KeyFile: keyFile(t, "0123456789abcdef"), Logger: logTo(lines)})
	eu := start(t, Config{Self: site("eu")})
	for from, to := range map[*Membership]*Membership{us: eu, eu: us} {
		if n, err := from.list.Join([]string{to.Addr()}); n != 0 || err == nil {
			t.Errorf("%s joins %s", from.Nodes()[0].ID(), to.Nodes()[0].ID())
		}
	}
	awaitLine(t, lines, "remote state is not encrypted", func() { _, _ = eu.list.Join([]string{us.Addr()}) })
	if got := alive(us) + ", " + alive(eu); got != "site/us, site/eu" {
		t.Errorf("alive: %s", got)
	}
}

// await tries cond until it holds.
func await(t *testing.T, otherwise string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(15 * time.Second)
	for !cond() {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatal(otherwise)
		}
	}
}

// awaitLine calls try each second until a line of a log has a text.
func awaitLine(t *testing.T, lines <-chan string, text string, try func()) {
	t.Helper()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	timeout := time.After(15 * time.Second)
	try()
	for {
		select {
		case line := <-lines:
			if strings.Contains(line, text) {
				return
			}
		case <-tick.C:
			try()
		case <-timeout:
			t.Fatalf("the log does not say: %s", text)
		}
	}
}
