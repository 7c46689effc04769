package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheck: a site without faults has none, and each fault is found.
func TestCheck(t *testing.T) {
	const good = `<html lang="en"><head><title>%</title><link rel="stylesheet" href="/docs/s.css"></head><body>` +
		`<h1 id="top">x</h1><h2 id="y">y</h2><a href="./b.html#y">b</a><a href="/docs/">home</a><a href="#top">top</a>` +
		`<a href="https://example.org/">elsewhere</a><img src="/docs/p.svg" alt="a picture">|</body></html>`
	for name, c := range map[string]struct {
		body, style string
		title       string
		want        string
	}{
		"none":                 {},
		"a missing page":       {body: `<a href="c.html">`, want: "index.html: no c.html, for the link c.html"},
		"a missing heading":    {body: `<a href="b.html#z">`, want: "index.html: b.html has no #z"},
		"a missing anchor":     {body: `<a href="#z">`, want: "index.html: index.html has no #z"},
		"outside the site":     {body: `<a href="/b.html">`, want: "index.html: /b.html is not below /docs/"},
		"a foreign script":     {body: `<script src="https://example.org/x.js"></script>`, want: "index.html: loads https://example.org/x.js from another host"},
		"a foreign picture":    {body: `<img srcset="//example.org/x.png 2x" alt="x">`, want: "index.html: loads //example.org/x.png from another host"},
		"a foreign style":      {style: `@import "https://example.org/x.css";`, want: "s.css: loads https://example.org/x.css from another host"},
		"a foreign font":       {style: `a{src:url(https://example.org/x.woff2)}`, want: "s.css: loads https://example.org/x.woff2 from another host"},
		"a script as a link":   {body: `<a href="javascript:x">`, want: `index.html: a link to "javascript:x"`},
		"a picture, no text":   {body: `<img src="p.svg">`, want: "index.html: 1 pictures without a text"},
		"a gap of levels":      {body: `<h4>x</h4>`, want: "index.html: a heading of level 4 below one of level 2"},
		"two first headings":   {body: `<h1>x</h1>`, want: "index.html: 2 headings of the first level, want 1"},
		"a title of two pages": {title: "b", want: `index.html: the title "b" of b.html as well`},
	} {
		dir := t.TempDir()
		for file, text := range map[string]string{
			"index.html": strings.NewReplacer("%", "home"+c.title, "|", c.body).Replace(good),
			"b.html":     strings.NewReplacer("%", "homeb", "|", "").Replace(good),
			"s.css":      c.style, "p.svg": "<svg/>",
		} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want := strings.ReplaceAll(c.want, `"b"`, `"homeb"`)
		result, err := Check(dir, "/docs/")
		if got := strings.Join(result.Faults, "\n"); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
		if name == "none" && (result.Pages != 2 || result.Links != 10 || result.Pictures != 2) {
			t.Errorf("%+v", result)
		}
	}
	if result, err := Check(t.TempDir(), "/"); err != nil || len(result.Faults) != 1 {
		t.Errorf("an empty site: %+v, %v", result, err)
	}
	if _, err := Check("", "/"); err == nil {
		t.Error("no directory is taken")
	}
}

// TestServe: serve answers until its context ends.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "index.html"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	read, write := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- run(ctx, []string{"-site", dir, "-addr", "127.0.0.1:0", "serve"}, write) }()
	line := make([]byte, 64)
	n, err := read.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.Get(strings.TrimSpace(string(line[:n])))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil || string(body) != "hello" || answer.Body.Close() != nil {
		t.Errorf("%q, %v", body, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := run(t.Context(), []string{"sing"}, io.Discard); err == nil || !strings.Contains(err.Error(), "stage, check and serve") {
		t.Errorf("an unknown command: %v", err)
	}
}
