package compare

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/testfuzz"
)

func TestParseStat(t *testing.T) {
	const tail = " 1 0 -1 4194560 1 2 3 4 150 50 7 3 20 0 1 0 100"
	pid, s, err := parseStat("42 (a) b (c) S 7 1" + tail)
	if err != nil || pid != 42 || s.parent != 7 || s.time != 2100*time.Millisecond {
		t.Errorf("%d %+v %v, want 42, parent 7, 2.1s", pid, s, err)
	}
	for _, bad := range []string{
		"", "42", "42 (x", "42 (x) S 7 1 1 0", "x (y) S 7 1" + tail, "42 (x) S p 1" + tail,
		"42 (x) S 7 1 1 0 -1 4194560 1 2 3 4 x 50 7 3 20",
	} {
		if _, _, err := parseStat(bad); !errors.Is(err, errStat) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzParseStat(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add("42 (a) b (c) S 7 1 1 0 -1 4194560 1 2 3 4 150 50 7 3 20 0 1 0 100")
	f.Add("1 () R 0")
	f.Fuzz(func(t *testing.T, line string) {
		if _, _, err := parseStat(line); err != nil && !errors.Is(err, errStat) {
			t.Errorf("%v is not %v", err, errStat)
		}
	})
}

func TestTreeTime(t *testing.T) {
	dir := t.TempDir()
	for pid, parent := range map[int]int{1: 0, 10: 1, 11: 10, 12: 11, 20: 1, 21: 20} {
		at := filepath.Join(dir, strconv.Itoa(pid))
		if err := os.Mkdir(at, 0o700); err != nil {
			t.Fatal(err)
		}
		// Each has used as many ticks as its id.
		line := strconv.Itoa(pid) + " (x) S " + strconv.Itoa(parent) + " 0 0 0 0 0 0 0 0 0 " + strconv.Itoa(pid) + " 0 0 0 0 0"
		if err := os.WriteFile(filepath.Join(at, "stat"), []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := treeTime(dir, []int{10, 11}); err != nil || got != 33*clockTick {
		t.Errorf("%v %v, want %v", got, err, 33*clockTick)
	}
	if _, err := treeTime(dir, []int{10, 99}); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a process that has ended: %v", err)
	}
}

func TestUsageOfThisProcess(t *testing.T) {
	before, err := usage([]int{os.Getpid()})
	if err != nil {
		t.Skip("no /proc here: ", err)
	}
	for sum, began := 0.0, time.Now(); ; sum++ {
		after, err := usage([]int{os.Getpid()})
		if err != nil {
			t.Fatal(err)
		}
		if after.Client > before.Client && after.Server > before.Server {
			return
		}
		if time.Since(began) > 20*time.Second {
			t.Fatalf("no processor time is seen: %+v, %+v", before, after)
		}
	}
}
