package wan_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samya-db/samya/internal/testfuzz"
	"github.com/samya-db/samya/internal/wan"
)

const ms = time.Millisecond

func TestSamya(t *testing.T) {
	m := wan.Samya()
	if got, want := m.Regions(), []string{"as", "au", "eu", "sa", "us"}; !slices.Equal(got, want) {
		t.Errorf("Regions() = %q, want %q", got, want)
	}
	for _, tc := range []struct {
		a, b string
		want time.Duration
	}{
		{"us", "as", 131 * ms},
		{"us", "eu", 132 * ms},
		{"us", "au", 161 * ms},
		{"us", "sa", 180 * ms},
		{"as", "eu", 262 * ms},
		{"as", "au", 125 * ms},
		{"as", "sa", 302 * ms},
		{"eu", "au", 265 * ms},
		{"eu", "sa", 218 * ms},
		{"au", "sa", 305 * ms},
		{"us", "us", 500 * time.Microsecond},
		{"us", "moon", 0},
		{"moon", "moon", 0},
		{"", "", 0},
	} {
		t.Run(tc.a+" "+tc.b, func(t *testing.T) {
			if got := m.RoundTrip(tc.a, tc.b); got != tc.want {
				t.Errorf("RoundTrip = %v, want %v", got, tc.want)
			}
			if got := m.RoundTrip(tc.b, tc.a); got != tc.want {
				t.Errorf("RoundTrip back = %v, want %v", got, tc.want)
			}
			if got := m.OneWay(tc.a, tc.b); got != tc.want/2 {
				t.Errorf("OneWay = %v, want %v", got, tc.want/2)
			}
		})
	}
	if got := m.Max(); got != 305*ms {
		t.Errorf("Max() = %v", got)
	}
}

func TestZeroMatrixDelaysNothing(t *testing.T) {
	var m wan.Matrix
	if m.OneWay("us", "eu") != 0 || m.OneWay("us", "us") != 0 || m.Max() != 0 || len(m.Regions()) != 0 {
		t.Error("the zero matrix knows a region")
	}
}

func TestOpen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "two.csv")
	if err := os.WriteFile(file, []byte("a, b, 20ms\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		in   string
		want time.Duration
	}{{"", 0}, {"none", 0}, {"samya", 305 * ms}, {file, 20 * ms}} {
		m, err := wan.Open(tc.in)
		if err != nil || m.Max() != tc.want {
			t.Errorf("Open(%q) = %v, %v, want a longest round trip of %v", tc.in, m, err, tc.want)
		}
	}
	if _, err := wan.Open(file + ".none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.WriteFile(file, []byte("a, b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := wan.Open(file); err == nil || !strings.Contains(err.Error(), file+": line 1: ") {
		t.Errorf("a bad file: %v", err)
	}
}

func TestParse(t *testing.T) {
	m, err := wan.Parse(strings.NewReader("# round trips\n\n us , as, 131ms\nas,us,131ms\neu,us,1.5s\r\nas,eu,0s\n as,as,2ms"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		a, b string
		want time.Duration
	}{
		{"us", "as", 131 * ms},
		{"us", "eu", 1500 * ms},
		{"as", "eu", 0},
		{"as", "as", 2 * ms},
		{"eu", "eu", 500 * time.Microsecond},
	} {
		if got := m.RoundTrip(tc.a, tc.b); got != tc.want {
			t.Errorf("RoundTrip(%s, %s) = %v, want %v", tc.a, tc.b, got, tc.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	var crowd strings.Builder
	for i := range 65 {
		fmt.Fprintf(&crowd, "r%d,r%d,1ms\n", i, i)
	}
	for _, tc := range []struct{ name, in, want string }{
		{"empty", "# nothing\n", "no regions"},
		{"two fields", "\nus,as\n", "line 2: 2 fields, want 3: two regions, their round trip"},
		{"four fields", "us,as,1ms,2ms", "line 1: 4 fields, want 3: two regions, their round trip"},
		{"bad region", "us,AS,1ms", "line 1: second region: 'A' at position 1, allowed are lower-case letters, digits and '-'"},
		{"no region", ",as,1ms", "line 1: first region: empty, at least 1 character"},
		{"no unit", "us,as,131", `line 1: round trip: time: missing unit in duration "131"`},
		{"negative", "us,as,-1ms", "line 1: round trip: -1ms, at least 0s"},
		{"too long a trip", "us,as,10.001s", "line 1: round trip: 10.001s, at most 10s"},
		{"asymmetric", "us,as,1ms\nas,us,2ms", "line 2: as and us are 2ms apart, and 1ms on an earlier line"},
		{"incomplete", "us,as,1ms\nus,eu,1ms", "no round trip between as and eu"},
		{"too many regions", crowd.String(), "line 65: more than 64 regions"},
		{"too long a line", "us,as,1ms\n#" + strings.Repeat("x", 2000), "line 2: line too long, at most 1024 bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := wan.Parse(strings.NewReader(tc.in))
			if err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// FuzzParse: an accepted matrix is symmetric, complete and within its bounds.
func FuzzParse(tf *testing.F) {
	f := testfuzz.On(tf)
	for _, s := range []string{"us,as,131ms", "a,b,1s\nb,a,1s\n", "#\n\na,a,0s", "a,b,1e9h", "a,b,-1s", ",,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := wan.Parse(strings.NewReader(s))
		if err != nil {
			return
		}
		for _, a := range m.Regions() {
			for _, b := range m.Regions() {
				d := m.RoundTrip(a, b)
				if d < 0 || d > 10*time.Second || d != m.RoundTrip(b, a) {
					t.Fatalf("RoundTrip(%s, %s) = %v, back %v", a, b, d, m.RoundTrip(b, a))
				}
			}
		}
	})
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := wan.Wait(t.Context(), 3*time.Second); err != nil || time.Since(began) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if err := wan.Wait(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if err := wan.Wait(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("no wait on an ended context: %v", err)
		}
	})
}

func ExampleParse() {
	m, err := wan.Parse(strings.NewReader("paris, tokyo, 220ms"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.RoundTrip("tokyo", "paris"), m.OneWay("paris", "tokyo"), m.RoundTrip("paris", "paris"))
	// Output: 220ms 110ms 500µs
}
