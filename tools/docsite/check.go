package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Result is what a check found.
type Result struct {
	Pages, Links, Pictures int
	// Faults are sorted; each names its page.
	Faults []string
}

// page is a page of the site as far as the check needs it.
type page struct {
	title    string
	language string
	ids      map[string]bool
	levels   []int // of headings
	links    []link
	noAlt    int
}

// link is a reference to a page or file.
type link struct {
	to    string
	asset bool // loaded without a click
}

// checker checks a site.
type checker struct {
	site   fs.FS
	base   string
	pages  map[string]*page
	result Result
}

// Check checks the site in a directory, which is served at the path base. Each link leads
// to a page and a heading of the site, or is a link of a reader to another host. No page
// and no style loads anything from another host. Each page has a title of its own, one
// heading of the first level, and no gap in the levels.
func Check(dir, base string) (Result, error) {
	if dir == "" {
		return Result{}, errors.New("-site: no directory to check")
	}
	c := &checker{site: os.DirFS(dir), base: base, pages: make(map[string]*page)}
	err := fs.WalkDir(c.site, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir():
			return err
		case path.Ext(name) == ".html":
			return c.parse(name)
		case path.Ext(name) == ".css":
			return c.style(name)
		}
		return nil
	})
	if err != nil {
		return Result{}, fmt.Errorf("check the site: %w", err)
	}
	titles := make(map[string]string)
	for name, p := range c.pages {
		c.check(name, p)
		if other, again := titles[p.title]; again {
			c.fault(max(name, other), "the title %q of %s as well", p.title, min(name, other))
		}
		titles[p.title] = name
	}
	if c.result.Pages = len(c.pages); c.result.Pages == 0 {
		c.fault(dir, "no pages")
	}
	slices.Sort(c.result.Faults)
	return c.result, nil
}

func (c *checker) fault(name, format string, args ...any) {
	c.result.Faults = append(c.result.Faults, name+": "+fmt.Sprintf(format, args...))
}

// parse reads a page.
func (c *checker) parse(name string) error {
	f, err := c.site.Open(name)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer func() { _ = f.Close() }() // the file was only read
	root, err := html.Parse(f)
	if err != nil {
		return fmt.Errorf("parse %s: %w", name, err)
	}
	p := &page{ids: map[string]bool{"": true}}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			p.element(n)
		}
	}
	c.pages[name] = p
	return nil
}

// element notes an element of a page.
func (p *page) element(n *html.Node) {
	attributes := make(map[string]string)
	for _, a := range n.Attr {
		attributes[a.Key] = a.Val
	}
	if id, ok := attributes["id"]; ok {
		p.ids[id] = true
	}
	if src, ok := attributes["src"]; ok {
		p.links = append(p.links, link{src, true})
	}
	for part := range strings.SplitSeq(attributes["srcset"], ",") {
		if to, _, _ := strings.Cut(strings.TrimSpace(part), " "); to != "" {
			p.links = append(p.links, link{to, true})
		}
	}
	switch n.DataAtom {
	case atom.Html:
		p.language = attributes["lang"]
	case atom.Title:
		if n.Parent.DataAtom == atom.Head {
			p.title = textOf(n)
		}
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		p.levels = append(p.levels, int(n.Data[1]-'0'))
	case atom.A, atom.Area:
		if to, ok := attributes["href"]; ok {
			p.links = append(p.links, link{to, false})
		}
	case atom.Link:
		p.links = append(p.links, link{attributes["href"], true})
	case atom.Img:
		if strings.TrimSpace(attributes["alt"]) == "" {
			p.noAlt++
		}
	}
}

// textOf is the text below a node.
func textOf(n *html.Node) string {
	var b strings.Builder
	for below := range n.Descendants() {
		if below.Type == html.TextNode {
			b.WriteString(below.Data)
		}
	}
	return strings.TrimSpace(b.String())
}

// notFound is the page that a host shows for an unknown path.
const notFound = "404.html"

// check checks a page.
func (c *checker) check(name string, p *page) {
	if p.title == "" {
		c.fault(name, "no title")
	}
	if p.language == "" {
		c.fault(name, "no language")
	}
	if p.noAlt > 0 {
		c.fault(name, "%d pictures without a text", p.noAlt)
	}
	before, first := 0, 0
	for _, level := range p.levels {
		if level == 1 {
			first++
		}
		if level > before+1 && before > 0 {
			c.fault(name, "a heading of level %d below one of level %d", level, before)
		}
		before = level
	}
	if first != 1 && name != notFound {
		c.fault(name, "%d headings of the first level, want 1", first)
	}
	for _, l := range p.links {
		c.link(name, l)
	}
}

// link checks a link of a page.
func (c *checker) link(name string, l link) {
	u, err := url.Parse(l.to)
	switch {
	case err != nil:
		c.fault(name, "%q is no link", l.to)
		return
	case u.Scheme == "data":
		return
	case u.Scheme != "" || u.Host != "":
		if l.asset {
			c.fault(name, "loads %s from another host", l.to)
		} else if u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "mailto" {
			c.fault(name, "a link to %q", l.to)
		}
		return
	}
	c.result.Links++
	if l.asset && slices.Contains([]string{".svg", ".png", ".jpg", ".webp", ".gif"}, path.Ext(u.Path)) {
		c.result.Pictures++
	}
	file := name
	if u.Path != "" {
		file = path.Join("/", path.Dir(name), u.Path)
		if strings.HasPrefix(u.Path, "/") {
			below, ok := strings.CutPrefix(u.Path, c.base)
			if !ok {
				c.fault(name, "%s is not below %s", l.to, c.base)
				return
			}
			file = path.Join("/", below)
		}
		if strings.HasSuffix(u.Path, "/") {
			file = path.Join(file, "index.html")
		}
		file = strings.TrimPrefix(file, "/")
	}
	if _, err := fs.Stat(c.site, file); err != nil {
		c.fault(name, "no %s, for the link %s", file, l.to)
		return
	}
	if target := c.pages[file]; target != nil && !target.ids[u.Fragment] {
		c.fault(name, "%s has no #%s", file, u.Fragment)
	}
}

// loads matches what a style loads.
var loads = regexp.MustCompile(`url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)`)

// style checks what a style loads.
func (c *checker) style(name string) error {
	text, err := fs.ReadFile(c.site, name)
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	for _, m := range loads.FindAllSubmatch(text, -1) {
		if to := string(m[1]) + string(m[2]); !strings.HasPrefix(to, "#") {
			c.link(name, link{to, true})
		}
	}
	return nil
}
