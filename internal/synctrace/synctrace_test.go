package synctrace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/synctrace"
)

func TestJudge(t *testing.T) {
	const (
		create = `7 openat(AT_FDCWD</w>, "/d/a", O_RDWR|O_CREAT|O_CLOEXEC, 0600) = 3</d/a>`
		write  = `7 pwrite64(3</d/a>, "x", 1, 0) = 1`
		sync   = `7 fdatasync(3</d/a>) = 0`
		failed = `7 fdatasync(3</d/a>) = -1 EIO (Input/output error)`
		names  = `7 fsync(4</d>) = 0`
		rename = `7 renameat(AT_FDCWD</w>, "/d/a", AT_FDCWD</w>, "/d/b") = 0`
		remove = `7 unlinkat(AT_FDCWD</w>, "/d/a", 0) = 0`
		mark   = `7 write(1</dev/pts/0>, "synctrace: durable\n", 19) = 19`
		other  = `7 pwrite64(3</e/a>, "x", 1, 0) = 1`
		began  = `7 fdatasync(3</d/a> <unfinished ...>`
		inside = `8 pwrite64(3</d/a>, "x", 1, 0) = 1`
		away   = `7 renameat(AT_FDCWD</w>, "/d/x", AT_FDCWD</w>, "/d/x.gone") = 0`
		inAway = `7 unlinkat(5</d/x.gone>, "f", 0) = 0`
		awayed = `7 unlinkat(6</d>, "x.gone", AT_REMOVEDIR) = 0`
		ended  = `7 <... fdatasync resumed>) = 0`
	)
	for name, tc := range map[string]struct {
		lines []string
		want  string
	}{
		"all synced":                 {[]string{create, write, sync, names, mark}, ""},
		"names first":                {[]string{create, names, write, sync, mark}, ""},
		"no sync":                    {[]string{create, names, write, mark}, "to /d/a is not synced"},
		"a sync that failed":         {[]string{create, names, write, failed, mark}, "to /d/a is not synced"},
		"written after the sync":     {[]string{create, names, write, sync, write, mark}, "line 5 to /d/a"},
		"written during the sync":    {[]string{create, names, began, inside, ended, mark}, "line 4 to /d/a"},
		"the name is not synced":     {[]string{create, write, sync, mark}, "/d is not synced"},
		"renamed, not synced":        {[]string{create, names, rename, mark}, "/d/b has its name since line 3"},
		"renamed":                    {[]string{create, write, sync, rename, names, mark}, ""},
		"renamed before it is whole": {[]string{create, write, rename, names, mark}, "before the write of line 2 is synced"},
		"removed":                    {[]string{create, write, remove, mark}, ""},
		"set aside and removed":      {[]string{away, names, inAway, awayed, mark}, ""},
		"removed, not set aside":     {[]string{away, inAway, names, awayed, mark}, "/d/x.gone/f is removed"},
		"elsewhere":                  {[]string{other, mark}, ""},
		"told once":                  {[]string{create, names, write, mark, mark}, "to /d/a is not synced"},
	} {
		t.Run(name, func(t *testing.T) {
			marks, wrong := synctrace.Judge(strings.Join(tc.lines, "\n")+"\n", "/d", nil)
			if marks == 0 || len(wrong) > 1 || (len(wrong) == 0) != (tc.want == "") || len(wrong) == 1 && !strings.Contains(wrong[0], tc.want) {
				t.Errorf("%d marks, %q; want %q", marks, wrong, tc.want)
			}
		})
	}
}

// TestRun watches a child that does all right.
func TestRun(t *testing.T) {
	synctrace.Run(t, func(path string) bool { return strings.HasSuffix(path, ".ignored") }, func(dir string, durable func()) {
		err := os.Mkdir(dir, 0o700)
		f, failed := os.Create(filepath.Join(dir, "f"))
		if err := errors.Join(err, failed); err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteString("x")
		err = errors.Join(err, f.Sync(), f.Close(), os.WriteFile(filepath.Join(dir, "f.ignored"), []byte("x"), 0o600))
		for _, d := range []string{dir, filepath.Dir(dir)} {
			g, failed := os.Open(d)
			if err := errors.Join(err, failed); err != nil {
				t.Fatal(err)
			}
			err = errors.Join(g.Sync(), g.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		durable()
	})
}
