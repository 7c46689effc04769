package failuretest

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samya-db/samya/devcluster/proc"
)

// segmentOf returns the path of a data directory's only segment with commits.
func segmentOf(t *testing.T, dir string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "journal-[0-9a-f]*"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("segments %v, %v; want one", paths, err)
	}
	return paths[0]
}

// framesOf returns the offsets at which the frames of a segment begin, and the end of the
// last frame. Package site/journal describes the format.
func framesOf(segment []byte) []int {
	at, all := 512, []int{512}
	for at+4 <= len(segment) {
		length := int(binary.LittleEndian.Uint32(segment[at:]))
		if length == 0 {
			break
		}
		at = (at + 24 + length + 7) / 8 * 8
		all = append(all, at)
	}
	return all
}

// TestDamagedLog spoils the data of a killed site. The site refuses to start if an
// acknowledged commit is missing, and its error names the damage. Nothing proves the last
// commit: the site takes a damaged last commit for a commit that was cut off.
func TestDamagedLog(t *testing.T) {
	beside(t)
	const taken = 20
	cluster := start(t, proc.Config{Sites: []string{"us"}})
	site := cluster.Site(0)
	c := dial(t, site)
	create(t, 100, c)
	for i := range taken {
		if _, err := c.acquire(t.Context(), fmt.Sprint("take-", i), 1, 0); err != nil {
			t.Fatal(err)
		}
	}
	kill(t, site)
	whole, err := os.ReadFile(segmentOf(t, site.Data))
	if err != nil {
		t.Fatal(err)
	}
	frames := framesOf(whole)
	last := len(frames) - 2
	if last < taken {
		t.Fatalf("%d frames of %d commits", last+1, taken)
	}
	flip := func(at int) func(string) {
		return func(dir string) {
			b := append([]byte(nil), whole...)
			b[at] ^= 0x10
			overwrite(t, segmentOf(t, dir), b)
		}
	}
	cut := func(at int) func(string) {
		return func(dir string) { overwrite(t, segmentOf(t, dir), whole[:at]) }
	}
	gone := func(pattern string) func(string) {
		return func(dir string) {
			paths, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil || len(paths) == 0 {
				t.Fatalf("%s: %v, %v", pattern, paths, err)
			}
			for _, path := range paths {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	tests := []struct {
		name  string
		spoil func(dir string)
		// want is the error of a refused start; empty: the site has out tokens acquired.
		want string
		out  int64
	}{
		{name: "as it was", spoil: func(string) {}, out: taken},
		{name: "the header", spoil: flip(3), want: "the log is damaged"},
		{name: "the first commit", spoil: flip(frames[0] + 30), want: "at byte 512: what was acknowledged is missing: commit"},
		{name: "the number of one", spoil: flip(frames[last/2] + 8), want: fmt.Sprintf("at byte %d: what was acknowledged is missing", frames[last/2])},
		{name: "the length of one", spoil: flip(frames[last/2]), want: fmt.Sprintf("at byte %d: what was acknowledged is missing", frames[last/2])},
		{name: "the last but one", spoil: flip(frames[last-1] + 24), want: fmt.Sprintf("at byte %d: what was acknowledged is missing", frames[last-1])},
		{name: "the last", spoil: flip(frames[last] + 24), out: taken - 1},
		{name: "cut within the last", spoil: cut(frames[last] + 30), want: fmt.Sprintf("at byte %d: what was acknowledged is missing: the file was cut short", frames[last]+30)},
		{name: "cut behind the last", spoil: cut(frames[last+1]), want: fmt.Sprintf("at byte %d: what was acknowledged is missing: the file was cut short", frames[last+1])},
		{name: "cut in the middle", spoil: cut(frames[last/2]), want: "the file was cut short"},
		{name: "cut within the header", spoil: cut(100), want: "it has no header of a log"},
		{name: "zeros behind the end", spoil: flip(frames[last+1] + 100), out: taken},
		{name: "no log", spoil: gone("journal-*"), want: "the log is damaged"},
		{name: "no database", spoil: gone("site.db"), want: "the base to which they belong is gone"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := copyData(t, site)
			test.spoil(dir)
			if test.want == "" {
				state, err := loaded(t, dir, "us")
				if err != nil {
					t.Fatal(err)
				}
				if len(state.Books) != 1 || int64(state.Books[0].Net) != test.out {
					t.Errorf("books %+v, want %d out", state.Books, test.out)
				}
				return
			}
			status, output := siteOn(t, dir, "failuretest", "us", "us")
			if status != 1 || !strings.Contains(output, test.want) || strings.Contains(output, "goroutine ") {
				t.Errorf("status %d, want 1 and %q:\n%s", status, test.want, output)
			}
		})
	}
	restart(t, site)
	if s := c.share(t); s.GetNet() != taken {
		t.Errorf("on the data as it was: %v", s)
	}
}

func overwrite(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
