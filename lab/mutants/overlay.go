package mutants

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// writeOverlay writes files to dir, by their names in the module, and the overlay that
// puts them in place. It returns the overlay's path. The overlay removes a file without
// contents.
func writeOverlay(dir, root string, contents map[string]string) (string, error) {
	var overlay struct{ Replace map[string]string }
	overlay.Replace = make(map[string]string)
	for name, text := range contents {
		if text == "" {
			overlay.Replace[filepath.Join(root, filepath.FromSlash(name))] = ""
			continue
		}
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return "", fmt.Errorf("make a directory: %w", err)
		}
		if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
			return "", fmt.Errorf("write a changed file: %w", err)
		}
		overlay.Replace[filepath.Join(root, filepath.FromSlash(name))] = to
	}
	encoded, err := json.Marshal(overlay)
	if err != nil {
		return "", fmt.Errorf("encode the overlay: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make a directory: %w", err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, encoded, 0o644); err != nil {
		return "", fmt.Errorf("write the overlay: %w", err)
	}
	return file, nil
}

// Environ returns this process's environment, in which the go command knows all modules
// of the source tree at root: the product and, if present, its laboratory.
func Environ(root string) []string {
	workspace := "off"
	if abs, err := filepath.Abs(root); err == nil {
		file := filepath.Join(abs, "lab", "go.work")
		if _, err := os.Stat(file); err == nil {
			workspace = file
		}
	}
	return append(os.Environ(), "GOWORK="+workspace)
}

// command runs a program in the root of the module and returns its stdout.
func (h *harness) command(ctx context.Context, environ []string, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = h.Root, environ
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if cause := ctx.Err(); err != nil && cause != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(name), cause)
	}
	if err != nil {
		text := strings.TrimSpace(stderr.String())
		return nil, fmt.Errorf("%s: %w: %s", filepath.Base(name), err, text[:min(len(text), 2000)])
	}
	return out, nil
}
