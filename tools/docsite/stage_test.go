package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// project is the project that the tests stage.
const project = "../.."

// TestStage: the project's pages become pages of the site, each reached by the navigation
// once, and no link leads out of the site but to the repository or another host.
func TestStage(t *testing.T) {
	out := t.TempDir()
	pages, err := Stage(project, out)
	if err != nil {
		t.Fatal(err)
	}
	var site struct {
		Description string
		Sidebar     []item
	}
	text, err := os.ReadFile(filepath.Join(out, ".vitepress/site.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &site); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, g := range site.Sidebar {
		for _, i := range g.Items {
			if seen[i.Link] || i.Text == "" {
				t.Errorf("%s: %q stands there twice, or without a title", i.Link, i.Text)
			}
			seen[i.Link] = true
			if _, err := os.Stat(filepath.Join(out, i.Link+".md")); err != nil {
				t.Error(err)
			}
		}
	}
	if len(seen) != pages-1 || pages < 40 {
		t.Errorf("the navigation has %d of %d pages, want all but the home page", len(seen), pages)
	}
	if !strings.HasPrefix(site.Description, "samya keeps a global limit") {
		t.Errorf("description %q", site.Description)
	}
}

// TestGroups: a page that the navigation names is there.
func TestGroups(t *testing.T) {
	for _, g := range groups {
		for _, source := range g.pages {
			if _, err := os.Stat(filepath.Join(project, source)); err != nil && source != httpReference {
				t.Errorf("%s: %v", g.title, err)
			}
		}
	}
}

// TestLinks: a link to a page leads to its place, a link to a picture takes the picture
// along, and another link leads to the repository. Code has no links.
func TestLinks(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"docs/a.md", "docs/b/c.md", "docs/b/d.svg", "site/e.go", "CHANGELOG.md"} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("# x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := &stage{root: root, pages: map[string]string{"docs/a.md": "a.md", "docs/b/c.md": "b/c.md", "CHANGELOG.md": "changelog.md"}, pictures: map[string]bool{}}
	for text, want := range map[string]string{
		"[c](b/c.md)":              "[c](./b/c.md)",
		"[c](b/c.md#x)":            "[c](./b/c.md#x)",
		"[c](#x)":                  "[c](#x)",
		"[c](../CHANGELOG.md)":     "[c](./changelog.md)",
		"![d](b/d.svg)":            "![d](./b/d.svg)",
		"[e](../site/e.go)":        "[e](" + repository + "/blob/main/site/e.go)",
		"[e](../site)":             "[e](" + repository + "/tree/main/site)",
		"[f](https://example.org)": "[f](https://example.org)",
		"`[c](b/c.md)`":            "`[c](b/c.md)`",
		"```\n[c](b/c.md)\n```":    "```\n[c](b/c.md)\n```",
		"    [c](b/c.md)":          "    [c](b/c.md)",
	} {
		if got, err := s.links("docs/a.md", text); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
	if !s.pictures["docs/b/d.svg"] {
		t.Error("the picture stays behind")
	}
	if got, err := s.links("docs/b/c.md", "[a](../a.md)"); err != nil || got != "[a](../a.md)" {
		t.Errorf("upwards: %s, %v", got, err)
	}
	if _, err := s.links("docs/a.md", "[g](gone.md)"); err == nil {
		t.Error("a link to nothing is taken")
	}
}

// TestHome: the home page has the first sentence of README.md, its first picture and its
// first commands, and nothing that README.md does not have.
func TestHome(t *testing.T) {
	readme := "# samya\n\nIt keeps\na limit.\n\nMore.\n\n![p](p.svg)\n\nEven more.\n\n## Try it\n\n    make demo\n\n## Use it\n\nNot here.\n"
	head, page, err := home(readme)
	if err != nil || !strings.Contains(head, `text: "It keeps a limit."`) {
		t.Errorf("%s, %v", head, err)
	}
	if want := "![p](p.svg)\n\n## Try it\n\n    make demo\n\n## What it is\n\nMore.\n\nEven more.\n"; page != want {
		t.Errorf("%q, want %q", page, want)
	}
	for _, bad := range []string{"", "# samya\n\nx\n\n## Try it\n\n![p](p.svg)", strings.ReplaceAll(readme, "Try it", "Run it")} {
		if _, _, err := home(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestReference: the page has a section for each operation and each object of the API.
func TestReference(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(project, description))
	if err != nil {
		t.Fatal(err)
	}
	page, err := Reference(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\n### `POST /v1/entities/{name}:acquire`\n", "\n### Acquire\n", "\n## Tokens\n", "\n## Objects\n",
		"Body: [Acquire](#acquire), as `application/json`.", "| 200 | Granted | [Moved](#moved) |",
		"| `consistency` | query | string | local is what one site has itself, bounded what one site has and has heard of the others, exact what all sites tell. One of `local`, `bounded`, `exact`. Default: `exact`. |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	if got, want := strings.Count(page, "\n### `"), strings.Count(string(text), "operationId:"); got != want {
		t.Errorf("%d operations, want %d", got, want)
	}
	for _, bad := range []string{"paths: [", "paths: {/x: {get: {summary: s}}}", "paths: {/x: {get: 7}}"} {
		if _, err := Reference(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestSidebar: a page that no group names comes into the last group.
func TestSidebar(t *testing.T) {
	s := &stage{pages: map[string]string{"README.md": "index.md", "docs/new.md": "new.md", "docs/faq.md": "faq.md"}, titles: map[string]string{"docs/new.md": "New", "docs/faq.md": "Questions"}}
	want := []item{{Text: "Start", Items: []item{{Text: "Questions", Link: "/faq"}}}, {Text: rest, Items: []item{{Text: "New", Link: "/new"}}}}
	got := s.sidebar()
	if len(got) != len(want) || !slices.EqualFunc(got, want, func(a, b item) bool {
		return a.Text == b.Text && slices.EqualFunc(a.Items, b.Items, func(a, b item) bool { return a.Text == b.Text && a.Link == b.Link })
	}) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
