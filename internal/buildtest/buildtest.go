// Package buildtest builds the program samya for tests that run it as processes. It keeps
// nothing: the caller names the program's directory and removes it.
package buildtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Samya builds the program of this work tree into a directory, as it is released:
// without cgo, paths of this machine and symbols for debuggers. It returns the program's path.
func Samya(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "samya")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "github.com/samya-db/samya/cmd/samya")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build samya: %w\n%s", err, out)
	}
	return path, nil
}
