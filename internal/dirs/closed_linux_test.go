package dirs_test

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/samya-db/samya/internal/dirs"
)

// TestMakeBelowWhatIsClosed: a directory is found although the caller may not read the
// directory above. Root may read everything, so the thread acts as another user.
func TestMakeBelowWhatIsClosed(t *testing.T) {
	closed := filepath.Join(t.TempDir(), "closed")
	open := filepath.Join(closed, "open")
	if err := os.MkdirAll(open, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{
		filepath.Dir(filepath.Dir(closed)): 0o711, filepath.Dir(closed): 0o711, closed: 0o111, open: 0o777,
	} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(closed, 0o700) })
	if os.Geteuid() == 0 {
		const nobody = 65534
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := syscall.Setfsuid(nobody); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = syscall.Setfsuid(0) }()
	}
	if _, err := os.Open(closed); !os.IsPermission(err) {
		t.Fatalf("the directory above is open: %v", err)
	}
	if err := dirs.Make(filepath.Join(open, "data"), 0o700); err != nil {
		t.Error(err)
	}
}
