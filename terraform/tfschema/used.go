package tfschema

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

var head = regexp.MustCompile(`(?m)^(resource|data) "([a-z0-9]+)_([a-z0-9_]+)" "`)

// Used lists the kinds of resources and data sources of a provider in the
// configurations, sorted.
func Used(configs fs.FS, provider string) (resources, data []string, err error) {
	err = fs.WalkDir(configs, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && e.Name() == ".terraform" {
			return fs.SkipDir
		}
		if e.IsDir() || !strings.HasSuffix(path, ".tf") {
			return nil
		}
		text, err := fs.ReadFile(configs, path)
		if err != nil {
			return err
		}
		for _, m := range head.FindAllStringSubmatch(string(text), -1) {
			if m[2] != provider {
				continue
			}
			if kind := m[2] + "_" + m[3]; m[1] == "data" {
				data = append(data, kind)
			} else {
				resources = append(resources, kind)
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list what the configurations use: %w", err)
	}
	slices.Sort(resources)
	slices.Sort(data)
	return slices.Compact(resources), slices.Compact(data), nil
}
