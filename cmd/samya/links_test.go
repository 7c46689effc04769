package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	fence   = regexp.MustCompile("(?ms)^```.*?^```$")
	inline  = regexp.MustCompile("`[^`\n]*`")
)

// TestLinks: every target of a link within this project exists, headings too.
func TestLinks(t *testing.T) {
	pages := []string{"../../README.md", "../../CHANGELOG.md", "../../CONTRIBUTING.md"}
	for _, pattern := range []string{"../../docs/*.md", "../../docs/*/*.md", "../../docs/*/*/*.md", "../../terraform/*.md", "../../deploy/helm/*/*.md", "../../clients/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	checked := 0
	for _, page := range pages {
		text := read(t, page)
		text = inline.ReplaceAllString(fence.ReplaceAllString(text, ""), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			path, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(path, ":") {
				continue // elsewhere
			}
			checked++
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: no %s", page, m[1])
			} else if anchor != "" && !anchors(read(t, target))[anchor] {
				t.Errorf("%s: %s has no heading #%s", page, target, anchor)
			}
		}
	}
	if checked < 100 {
		t.Errorf("%d links; the test does not see them", checked)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// anchors returns the names by which links reach a page's headings: lower case, without
// marks, blanks as dashes.
func anchors(page string) map[string]bool {
	names := make(map[string]bool)
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		names[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])] = true
	}
	return names
}
