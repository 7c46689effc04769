package compare

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSoakVerdict(t *testing.T) {
	looks := func(of func(i int) float64) []int64 {
		seen := make([]int64, 300)
		for i := range seen {
			seen[i] = int64(of(i))
		}
		return seen
	}
	for name, c := range map[string]struct {
		memory []int64
		flat   bool
		slope  float64 // MiB a minute
	}{
		"level":                    {looks(func(int) float64 { return 100 * mib }), true, 0},
		"fills up, then level":     {looks(func(i int) float64 { return float64(min(i, 60)) * mib }), true, 0},
		"grows by 2 MiB a minute":  {looks(func(i int) float64 { return (100 + float64(i)/30) * mib }), true, 2},
		"grows by 12 MiB a minute": {looks(func(i int) float64 { return (100 + float64(i)/5) * mib }), false, 12},
	} {
		s := &Soak{Memory: c.memory, Mapped: looks(func(int) float64 { return 7 * mib })}
		if err := s.judge(time.Second); err != nil {
			t.Fatal(err)
		}
		if s.Flat != c.flat || s.LastMapped != 7*mib || math.Abs(s.Slope/mib-c.slope) > .01 {
			t.Errorf("%s: flat %v, slope %.2f MiB; want %v, %v", name, s.Flat, s.Slope/mib, c.flat, c.slope)
		}
		var b strings.Builder
		if err := s.WriteText(&b); err != nil || strings.Contains(b.String(), "GROWS") == c.flat {
			t.Errorf("%s: %v %s", name, err, &b)
		}
	}
	if err := (&Soak{Memory: make([]int64, 4)}).judge(time.Second); !errors.Is(err, errTooShort) {
		t.Errorf("four looks: %v", err)
	}
}

func TestSoakWatchesTheProcess(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip("no sleep here")
	}
	dir := diskDir(t)
	f := &fake{name: "fake", kind: Durable, ways: oneWay, takes: time.Millisecond, program: []string{sleep, "1000"}}
	o := &SoakOptions{System: f, Way: "one", Time: time.Second, Every: 10 * time.Millisecond, Dir: dir}
	s, err := RunSoak(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Memory) < 5 || s.Last <= 0 || s.Rate <= 0 || !s.Flat {
		t.Errorf("%+v", s)
	}
	nothingLeft(t, dir, f.pids)
	o.Every = 100 * time.Millisecond
	if _, err := RunSoak(t.Context(), o); !errors.Is(err, errTooShort) {
		t.Errorf("two looks a part: %v", err)
	}
}

func TestResident(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "7"), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(line string) {
		if err := os.WriteFile(filepath.Join(dir, "7", "statm"), []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("900 20 3 1 0 5 0\n")
	if all, mapped, err := resident(dir, 7); err != nil || all != 20*int64(os.Getpagesize()) || mapped != 3*int64(os.Getpagesize()) {
		t.Errorf("%d %d %v", all, mapped, err)
	}
	for _, bad := range []string{"", "900", "900 20", "900 x 3", "900 20 x"} {
		write(bad)
		if _, _, err := resident(dir, 7); !errors.Is(err, errStat) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, _, err := resident(dir, 8); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no process: %v", err)
	}
}
