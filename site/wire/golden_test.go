package wire_test

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/versions"
	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	"github.com/samya-db/samya/site/wire"
	"google.golang.org/protobuf/proto"
)

var update = flag.Bool("update", false, "keep messages of all kinds as test data of this build's version, unless there are some")

// messagesOf is where the messages of a version are kept, one a line.
func messagesOf(v versions.Version) string {
	return filepath.Join("testdata", "versions", fmt.Sprint(v), "messages")
}

// TestGoldenMessages reads messages of all kinds of each version before this build's, as
// that version's build sent them. Encoded again they are the same, byte for byte. With
// -update the messages of this build become the test data of its version; those of a
// version that was released are never written again.
func TestGoldenMessages(t *testing.T) {
	encode := proto.MarshalOptions{Deterministic: true}
	if *update {
		var lines strings.Builder
		for _, e := range seeds() {
			raw, err := encode.Marshal(wire.Encode(&e))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&lines, "%x\n", raw)
		}
		keep(t, messagesOf(versions.Own().Newest), lines.String())
	}
	for v := versions.First; v < versions.Own().Newest; v++ {
		kept, err := os.ReadFile(messagesOf(v))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range strings.Lines(string(kept)) {
			n++
			raw, err := hex.DecodeString(strings.TrimSuffix(line, "\n"))
			if err != nil {
				t.Fatal(err)
			}
			var p peerv1.ProtocolMessage
			if err := proto.Unmarshal(raw, &p); err != nil {
				t.Fatal(err)
			}
			e, err := wire.Decode(&p, "b", "a")
			if err != nil {
				t.Errorf("version %d, message %d: %v", v, n, err)
				continue
			}
			again, err := encode.Marshal(wire.Encode(&e))
			if err != nil || !bytes.Equal(again, raw) {
				t.Errorf("version %d, message %d: %v, kept\n%x\nagain\n%x", v, n, err, raw, again)
			}
		}
		if n < 40 {
			t.Errorf("%d messages of version %d are kept", n, v)
		}
	}
}

// keep writes test data that is not there yet.
func keep(t *testing.T, to, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		t.Fatalf("the test data of a version is written once: %v", err)
	}
	if _, err := file.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}
