package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// repository is where links to files lead that are no pages.
const repository = "https://github.com/samya-db/samya"

// httpReference is the page that is made of the description of the HTTP API. No file of
// the project has the name.
const httpReference = "reference-http.md"

// description is the file with the description of the HTTP API.
const description = "appmgr/httpapi/openapi.yaml"

// further are the pages outside docs/, with their places on the site.
var further = map[string]string{
	"README.md":                    "index.md",
	"CHANGELOG.md":                 "changelog.md",
	"CONTRIBUTING.md":              "contributing.md",
	"clients/python/README.md":     "client-python.md",
	"clients/typescript/README.md": "client-typescript.md",
	"deploy/helm/samya/README.md":  "helm.md",
	"terraform/README.md":          "terraform.md",
	"terraform/reference.md":       "terraform-reference.md",
}

// generator are the files of the generator, which are copied beside the pages.
const generator = "tools/docsite"

// stage makes the pages of the site.
type stage struct {
	root, out string
	pages     map[string]string // place on the site by source
	titles    map[string]string // by source
	pictures  map[string]bool   // sources to copy
}

// Stage writes the pages of the project at root to out, with the files that the generator
// needs, and returns their number.
func Stage(root, out string) (int, error) {
	if out == "" {
		return 0, errors.New("-out: no directory to write to")
	}
	s := &stage{root: root, out: out, pages: maps.Clone(further), titles: make(map[string]string), pictures: make(map[string]bool)}
	if err := s.find(); err != nil {
		return 0, err
	}
	if err := s.clean(); err != nil {
		return 0, err
	}
	for source := range s.pages {
		if err := s.page(source); err != nil {
			return 0, fmt.Errorf("page %s: %w", source, err)
		}
	}
	reference, err := s.read(description)
	if err != nil {
		return 0, err
	}
	page, err := Reference(reference)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", description, err)
	}
	s.pages[httpReference], s.titles[httpReference] = httpReference, "HTTP API reference"
	if err := s.write(httpReference, frontOf(description)+page); err != nil {
		return 0, err
	}
	for picture := range s.pictures {
		text, err := s.read(picture)
		if err != nil {
			return 0, err
		}
		if err := s.write(placeOf(picture), text); err != nil {
			return 0, err
		}
	}
	return len(s.pages), s.configure()
}

// find finds the pages below docs/.
func (s *stage) find() error {
	err := fs.WalkDir(os.DirFS(s.root), "docs", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && path.Ext(name) == ".md" {
			s.pages[name] = placeOf(name)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("find pages: %w", err)
	}
	return nil
}

// placeOf is the place of a file of the project on the site.
func placeOf(source string) string { return strings.TrimPrefix(source, "docs/") }

// clean removes the pages of an earlier run. What npm has installed stays.
func (s *stage) clean() error {
	entries, err := os.ReadDir(s.out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the earlier pages: %w", err)
	}
	for _, e := range entries {
		if e.Name() == "node_modules" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(s.out, e.Name())); err != nil {
			return fmt.Errorf("remove the earlier pages: %w", err)
		}
	}
	return nil
}

func (s *stage) read(source string) (string, error) {
	b, err := os.ReadFile(filepath.Join(s.root, source))
	if err != nil {
		return "", fmt.Errorf("read: %w", err)
	}
	return string(b), nil
}

func (s *stage) write(place, text string) error {
	file := filepath.Join(s.out, place)
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return fmt.Errorf("write %s: %w", place, err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", place, err)
	}
	return nil
}

// page writes a page.
func (s *stage) page(source string) error {
	text, err := s.read(source)
	if err != nil {
		return err
	}
	text = comment.ReplaceAllString(text, "")
	s.titles[source] = titleOf(text)
	if s.titles[source] == "" {
		return errors.New("no title: the first heading must be of the first level")
	}
	text, err = s.links(source, text)
	if err != nil {
		return err
	}
	head := frontOf(source)
	if source == "README.md" {
		if head, text, err = home(text); err != nil {
			return err
		}
	}
	return s.write(s.pages[source], head+text)
}

// sourceOf is the place of a file in the repository.
func sourceOf(file string) string { return repository + "/blob/main/" + file }

// frontOf is what stands before the text of a page: where its source is.
func frontOf(source string) string { return "---\nsource: " + sourceOf(source) + "\n---\n\n" }

var (
	comment = regexp.MustCompile(`(?s)<!--.*?-->\n?`)
	title   = regexp.MustCompile(`(?m)^# (.+)$`)
	// marked matches code, where nothing is a link, or the target of a link.
	marked = regexp.MustCompile("(?ms)^```.*?^```$|^    [^\n]*$|`[^`\n]+`|(\\]\\()([^)\\s]+)(\\))")
)

// titleOf is the first heading of a page, without marks.
func titleOf(text string) string {
	m := title.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return strings.ReplaceAll(m[1], "`", "")
}

// links leads the links of a page to the pages of the site, or else to the repository.
func (s *stage) links(source, text string) (string, error) {
	var errs []error
	text = marked.ReplaceAllStringFunc(text, func(all string) string {
		m := marked.FindStringSubmatch(all)
		target, anchor, hasAnchor := strings.Cut(m[2], "#")
		if m[2] == "" || target == "" || strings.Contains(target, ":") {
			return all
		}
		if hasAnchor {
			anchor = "#" + anchor
		}
		target = path.Join(path.Dir(source), target)
		to, err := s.target(source, target)
		if err != nil {
			errs = append(errs, err)
		}
		return m[1] + to + anchor + m[3]
	})
	return text, errors.Join(errs...)
}

// target is what a link of a page to a file of the project becomes.
func (s *stage) target(source, file string) (string, error) {
	if place, ok := s.pages[file]; ok {
		return s.relative(source, place), nil
	}
	info, err := os.Stat(filepath.Join(s.root, file))
	switch {
	case err != nil:
		return "", fmt.Errorf("link: %w", err)
	case info.IsDir():
		return repository + "/tree/main/" + file, nil
	case slices.Contains([]string{".svg", ".png", ".jpg", ".webp", ".gif"}, path.Ext(file)):
		s.pictures[file] = true
		return s.relative(source, placeOf(file)), nil
	}
	return sourceOf(file), nil
}

// relative is the link from the page of a source to a place.
func (s *stage) relative(source, place string) string {
	to, err := filepath.Rel(path.Dir(s.pages[source]), place)
	if err != nil {
		return "/" + place // not reached: both are relative to the same directory
	}
	if to = filepath.ToSlash(to); !strings.HasPrefix(to, ".") {
		to = "./" + to
	}
	return to
}

// home makes the home page out of README.md: its first sentence, its first picture and the
// commands of its section "Try it".
func home(text string) (head, page string, err error) {
	paragraphs := strings.Split(text, "\n\n")
	at := slices.IndexFunc(paragraphs, func(p string) bool { return strings.HasPrefix(p, "![") })
	try := slices.IndexFunc(paragraphs, func(p string) bool { return strings.TrimSpace(p) == "## Try it" })
	if len(paragraphs) < 3 || at < 2 || try < at {
		return "", "", errors.New("want a sentence, a picture and a section \"Try it\", in this order")
	}
	use := try + 1
	for use < len(paragraphs) && !strings.HasPrefix(paragraphs[use], "## ") {
		use++
	}
	sentence, err := json.Marshal(strings.Join(strings.Fields(paragraphs[1]), " "))
	if err != nil {
		return "", "", fmt.Errorf("quote the first sentence: %w", err)
	}
	head = "---\nlayout: home\ntitleTemplate: Token quotas for many regions\nsource: " + sourceOf("README.md") + "\nhero:\n  name: samya\n  text: " + string(sentence) + `
  actions:
    - text: Quickstart
      link: /quickstart
    - text: Concepts
      link: /concepts
      theme: alt
    - text: HTTP API
      link: /reference-http
      theme: alt
---

`
	order := slices.Concat(paragraphs[at:at+1], paragraphs[try:use], []string{"## What it is"}, paragraphs[2:at], paragraphs[at+1:try])
	return head, strings.Join(order, "\n\n") + "\n", nil
}

// item is an entry of the navigation, as VitePress has them.
type item struct {
	Text  string `json:"text"`
	Link  string `json:"link,omitempty"`
	Items []item `json:"items,omitempty"`
}

// sidebar is the navigation.
func (s *stage) sidebar() []item {
	left := maps.Clone(s.pages)
	delete(left, "README.md")
	var all []item
	add := func(title string, sources []string) {
		g := item{Text: title}
		for _, source := range sources {
			if place, ok := left[source]; ok {
				g.Items = append(g.Items, item{Text: cmp.Or(titles[source], s.titles[source]), Link: "/" + strings.TrimSuffix(place, ".md")})
				delete(left, source)
			}
		}
		if len(g.Items) > 0 {
			all = append(all, g)
		}
	}
	for _, g := range groups {
		add(g.title, g.pages)
	}
	add(rest, slices.Sorted(maps.Keys(left)))
	return all
}

// configure writes the files of the generator.
func (s *stage) configure() error {
	for _, name := range []string{"package.json", "package-lock.json", ".npmrc", ".vitepress/config.mts", ".vitepress/theme/index.ts", ".vitepress/theme/style.css"} {
		text, err := s.read(path.Join(generator, name))
		if err != nil {
			return err
		}
		if err := s.write(name, text); err != nil {
			return err
		}
	}
	readme, err := s.read("README.md")
	if err != nil {
		return err
	}
	sentence, _, _ := strings.Cut(strings.TrimSpace(title.ReplaceAllString(readme, "")), "\n\n")
	b, err := json.MarshalIndent(map[string]any{
		"repository": repository, "sidebar": s.sidebar(), "description": strings.Join(strings.Fields(sentence), " "),
	}, "", "  ")
	if err != nil {
		return fmt.Errorf("write the navigation: %w", err)
	}
	return s.write(".vitepress/site.json", string(b))
}
