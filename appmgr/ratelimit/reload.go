package ratelimit

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/samya-db/samya/internal/ratelimit/rules"
	"github.com/samya-db/samya/internal/reload"
)

const (
	// pollInterval is the time between two looks at the files.
	pollInterval = 2 * time.Second
	// maxFiles bounds the files of a directory, and maxBytes all their contents.
	maxFiles = 10_000
	maxBytes = 64 << 20
)

// loaded are rules, and the files that they were read from.
type loaded struct {
	files  []rules.File
	config *rules.Config
}

// ReadRules reads the rules in a file, or in all files *.yaml and *.yml of a directory. Its
// error names each fault with its file and line.
func ReadRules(path string) (*rules.Config, error) {
	at, err := load(path, nil)
	if err != nil {
		return nil, err
	}
	return at.config, nil
}

// load reads the rules; it returns before if no file has changed.
func load(path string, before *loaded) (*loaded, error) {
	files, err := readFiles(path)
	if err != nil {
		return nil, fmt.Errorf("reading rate limits: %w", err)
	}
	if before != nil && slices.EqualFunc(files, before.files, func(a, b rules.File) bool { return a.Name == b.Name && bytes.Equal(a.Data, b.Data) }) {
		return before, nil
	}
	config, err := rules.Parse(files...)
	if err != nil {
		return nil, err
	}
	return &loaded{files, config}, nil
}

// readFiles reads a file, or the files of a directory.
func readFiles(path string) ([]rules.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	names := []string{path}
	if info.IsDir() {
		if names, err = list(path); err != nil {
			return nil, err
		}
	}
	left := int64(maxBytes)
	var files []rules.File
	for _, n := range names {
		info, err := os.Stat(n)
		switch {
		case err != nil:
			return nil, err
		case info.Size() > left:
			return nil, fmt.Errorf("%s: all files together have more than %d bytes", n, maxBytes)
		}
		left -= info.Size()
		b, err := os.ReadFile(n)
		if err != nil {
			return nil, err
		}
		files = append(files, rules.File{Name: n, Data: b})
	}
	return files, nil
}

// list returns the files of a directory that hold rules. Names that begin with a dot are
// left out, as Kubernetes keeps the versions of a ConfigMap there.
func list(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") || ext != ".yaml" && ext != ".yml" {
			continue
		}
		names = append(names, filepath.Join(dir, e.Name()))
	}
	if len(names) > maxFiles {
		return nil, fmt.Errorf("%s: %d files, at most %d", dir, len(names), maxFiles)
	}
	return names, nil
}

// Run takes up changes of the files until ctx ends.
func (s *Service) Run(ctx context.Context) {
	if s.cfg.Dir == "" {
		return
	}
	var fault reload.Fault
	reload.Every(ctx, pollInterval, func() { s.look(ctx, &fault) })
}

// look looks at the files once. Rules with a fault are not taken up: the rules before stay in
// force.
func (s *Service) look(ctx context.Context, fault *reload.Fault) {
	before := s.loaded.Load()
	now, err := load(s.cfg.Dir, before)
	switch fresh := fault.Fresh(err); {
	case fresh:
		s.metrics.reloads.WithLabelValues("failed").Inc()
		s.log.ErrorContext(ctx, "rate limits were not read again; the limits read before stay in force", slog.Any("error", err))
	case err == nil && now != before:
		s.metrics.reloads.WithLabelValues("done").Inc()
		s.take(now)
	}
}

// take takes up rules.
func (s *Service) take(l *loaded) {
	s.loaded.Store(l)
	s.metrics.taken(l.config.Len())
	s.log.Info("rate limits were read", slog.Int("files", len(l.files)), slog.Int("domains", len(l.config.Domains())),
		slog.Int("descriptors", l.config.Len()))
	if len(l.config.Domains()) == 0 {
		s.log.Warn("there are no rate limits, and every request passes", slog.String("dir", s.cfg.Dir))
	}
}
