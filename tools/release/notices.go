package main

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// licences finds the terms of the linked modules.
type licences struct {
	root string            // directory of Go itself
	dirs map[string]string // directories by "path@version"
}

// licences asks Go for the directories of the modules.
func (r *release) licences(ctx context.Context) (*licences, error) {
	env := append([]string{"GOFLAGS=", "GOWORK=off"}, r.env...)
	root, err := output(ctx, r.source.dir, env, "go", "env", "GOROOT")
	if err != nil {
		return nil, fmt.Errorf("licences: %w", err)
	}
	text, err := output(ctx, r.source.dir, env, "go", "list", "-m", "-json", "all")
	if err != nil {
		return nil, fmt.Errorf("licences: %w", err)
	}
	l := &licences{root: strings.TrimSpace(root), dirs: make(map[string]string)}
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		var m struct{ Path, Version, Dir string }
		err := d.Decode(&m)
		if errors.Is(err, io.EOF) {
			return l, nil
		}
		if err != nil {
			return nil, fmt.Errorf("licences: %w", err)
		}
		l.dirs[m.Path+"@"+m.Version] = m.Dir
	}
}

// notices returns the terms of everything in a binary but samya itself. A module without
// terms is an error: it must not be given away.
func (l *licences) notices(binary string) (string, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return "", fmt.Errorf("licences: %w", err)
	}
	var b strings.Builder
	b.WriteString("samya contains what follows, each under its own terms.\n")
	if err := terms(&b, "Go "+info.GoVersion, l.root); err != nil {
		return "", err
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if err := terms(&b, m.Path+" "+m.Version, l.dirs[m.Path+"@"+m.Version]); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// terms writes the terms in the directory of a module.
func terms(b *strings.Builder, name, dir string) error {
	if dir == "" {
		return fmt.Errorf("licences: %s: it is not known where it is", name)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("licences: %s: %w", name, err)
	}
	found := false
	for _, e := range entries {
		if e.IsDir() || !isTerms(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return fmt.Errorf("licences: %s: %w", name, err)
		}
		found = true
		fmt.Fprintf(b, "\n%s\n%s: %s\n\n%s\n", strings.Repeat("=", 80), name, e.Name(), strings.TrimSpace(string(text)))
	}
	if !found {
		return fmt.Errorf("licences: %s: none in %s", name, dir)
	}
	return nil
}

// isTerms reports whether the name is a file of terms.
func isTerms(name string) bool {
	upper := strings.ToUpper(name)
	for _, word := range []string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "PATENTS", "UNLICENSE"} {
		if strings.HasPrefix(upper, word) && !strings.HasSuffix(upper, ".GO") {
			return true
		}
	}
	return false
}
