package session_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/session"
	"github.com/samya-db/samya/internal/testfuzz"
)

// TestParse: a session and a sequence make up a request id, which sites take.
func TestParse(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	for _, want := range []uint64{0, 1, 9, 10, 15, 16, 255, 1 << 14, session.MaxSequence} {
		var id session.ID
		_, _ = random.Read(id[:])
		text := string(session.Append([]byte(id.Text()), want))
		if err := name.RequestID("request_id", text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if got, sequence, ok := session.Parse(text); !ok || got != id || sequence != want {
			t.Errorf("Parse(%q) = %x, %d, %v; want %x, %d", text, got, sequence, ok, id, want)
		}
	}
}

// TestNoSession: an id of any other form is no id of a session.
func TestNoSession(t *testing.T) {
	of := session.ID{1, 2, 3}.Text()
	for _, text := range []string{
		"", "s.", of, of + "g", of + "A", of + "00", of + "01", of + " 1", of + "1.", of + "-1", of + "10000000000",
		"S" + of[1:] + "1", strings.Replace(of, "A", "+", 1) + "1", strings.Replace(of, "A", "\n", 1) + "1", of[:5] + of[6:] + "1",
		"01J9ZQ4M6V8K3N5P7R9T0V2X4Z",
	} {
		if id, sequence, ok := session.Parse(text); ok {
			t.Errorf("Parse(%q) = %x, %d", text, id, sequence)
		}
	}
}

// FuzzParse: a parsed id is written in the same way.
func FuzzParse(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add(session.ID{1, 2, 3}.Text() + "1f")
	f.Fuzz(func(t *testing.T, text string) {
		id, sequence, ok := session.Parse(text)
		if again := string(session.Append([]byte(id.Text()), sequence)); ok && (again != text || sequence > session.MaxSequence) {
			t.Fatalf("Parse(%q) = %x, %d, whose id is %q", text, id, sequence, again)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	text := session.ID{1, 2, 3}.Text() + "1f42"
	b.ReportAllocs()
	for b.Loop() {
		if _, _, ok := session.Parse(text); !ok {
			b.Fatal(text)
		}
	}
}
