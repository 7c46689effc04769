package compare

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samya-db/samya/devcluster/proc"
)

func TestDirForAUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives directories away")
	}
	u := &proc.User{UID: 65534, GID: 65534}
	base := diskDir(t)
	e := &Env{Dir: filepath.Join(base, "data")}
	if err := os.Mkdir(e.Dir, 0o711); err != nil {
		t.Fatal(err)
	}
	if !open(e.Dir) {
		t.Skip("a directory above the work tree is closed to others")
	}
	dir, err := e.dirFor(u, "one")
	if err != nil || filepath.Dir(dir) != e.Dir {
		t.Errorf("%s %v, want one within %s", dir, err, e.Dir)
	}
	if err := os.Chmod(base, 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err = e.dirFor(u, "two")
	switch {
	case errors.Is(err, errUnreachable): // no other place on this disk
	case err != nil:
		t.Error(err)
	case !strings.HasPrefix(dir, worldDir) || len(e.elsewhere) != 1 || e.elsewhere[0] != dir:
		t.Errorf("%s, remembered %v", dir, e.elsewhere)
	default:
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	}
	if dir, err := e.dirFor(nil, "three"); err != nil || filepath.Dir(dir) != e.Dir {
		t.Errorf("for nobody else: %s %v", dir, err)
	}
}
