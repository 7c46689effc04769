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
	return build(ctx, filepath.Join(dir, "samya"), "-s -w")
}

// Versioned is Samya, stamped as the build of a version of messages and data: see package
// versions.
func Versioned(ctx context.Context, dir string, version int) (string, error) {
	return build(ctx, filepath.Join(dir, fmt.Sprintf("samya-of-version-%d", version)),
		fmt.Sprintf("-s -w -X github.com/samya-db/samya/internal/versions.stamped=%d", version))
}

func build(ctx context.Context, path, flags string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags="+flags, "-o", path, "github.com/samya-db/samya/cmd/samya")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build samya: %w\n%s", err, out)
	}
	return path, nil
}
