package console

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// fixture are files such as a build of the pages makes.
func fixture() fstest.MapFS {
	return fstest.MapFS{
		"index.html":             {Data: []byte("<!doctype html>" + strings.Repeat("<p>samya</p>", 100))},
		"assets/app-3f2a9c1b.js": {Data: []byte(strings.Repeat("let a = 1;\n", 100))},
		"logo.png":               {Data: []byte("\x89PNG")},
		"robots.txt":             {Data: []byte("x")},
	}
}

func get(t *testing.T, h http.Handler, verb, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(verb, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func text(t *testing.T, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestHandler: files are found, and pages of the app get the index; a missing script is
// missing. Each answer has the headers that protect it.
func TestHandler(t *testing.T) {
	h, err := handlerOf(fixture())
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		verb, path string
		status     int
		media      string
		cache      string
	}{
		{"GET", "/console/", 200, "text/html", "no-cache"},
		{"HEAD", "/console/", 200, "text/html", "no-cache"},
		{"GET", "/console/index.html", 200, "text/html", "no-cache"},
		{"GET", "/console/entity?name=acme/vm", 200, "text/html", "no-cache"},
		{"GET", "/console/entities/acme/v1.2", 200, "text/html", "no-cache"},
		{"GET", "/console/assets/app-3f2a9c1b.js", 200, "text/javascript", "public, max-age=31536000, immutable"},
		{"GET", "/console/logo.png", 200, "image/png", "no-cache"},
		{"GET", "/console/assets/app-00000000.js", 404, "text/plain", ""},
		{"GET", "/console/../assets/app-3f2a9c1b.css", 404, "text/plain", ""},
		{"GET", "/console", 307, "text/html", ""},
		{"GET", "/", 307, "text/html", ""},
		{"POST", "/console/", 405, "text/plain", ""},
		{"DELETE", "/console/index.html", 405, "text/plain", ""},
	} {
		r := get(t, h, tc.verb, tc.path)
		if r.Code != tc.status || !strings.HasPrefix(r.Header().Get("Content-Type"), tc.media) || r.Header().Get("Cache-Control") != tc.cache {
			t.Errorf("%s %s: status %d, type %q, cache %q", tc.verb, tc.path, r.Code, r.Header().Get("Content-Type"), r.Header().Get("Cache-Control"))
		}
		for key, want := range protections {
			if got := r.Header().Get(key); got != want {
				t.Errorf("%s %s: %s is %q", tc.verb, tc.path, key, got)
			}
		}
	}
}

// TestForms: a caller that takes gzip gets it, with a tag of its own, and each form is asked
// for again in vain.
func TestForms(t *testing.T) {
	h, err := handlerOf(fixture())
	if err != nil {
		t.Fatal(err)
	}
	want := string(fixture()["index.html"].Data)
	tags := make(map[string]bool)
	for accepted, encoding := range map[string]string{
		"": "", "gzip": "gzip", "br, gzip;q=0.5": "gzip", "gzip;q=0": "", "gzip; q=0.0, *": "", "*": "gzip", "br": "", "gzip;q=x": "",
	} {
		r := get(t, h, "GET", "/console/", "Accept-Encoding", accepted)
		if got := r.Header().Get("Content-Encoding"); got != encoding || r.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: encoding %q, want %q", accepted, got, encoding)
			continue
		}
		var body io.Reader = r.Body
		if encoding == "gzip" {
			if body, err = gzip.NewReader(r.Body); err != nil {
				t.Fatal(err)
			}
		}
		if got := text(t, body); got != want {
			t.Errorf("%q: another text", accepted)
		}
		tag := r.Header().Get("ETag")
		tags[tag] = true
		again := get(t, h, "GET", "/console/", "Accept-Encoding", accepted, "If-None-Match", tag)
		if again.Code != http.StatusNotModified || text(t, again.Body) != "" || again.Header().Get("Content-Security-Policy") != policy {
			t.Errorf("%q: status %d for the tag of the same form", accepted, again.Code)
		}
	}
	if len(tags) != 2 {
		t.Errorf("%d tags, want one a form", len(tags))
	}
}

// TestFilesRefused: a build with files that nobody may be sent is no console.
func TestFilesRefused(t *testing.T) {
	for name, files := range map[string]fstest.MapFS{
		"no index":  {"app.js": {}},
		"a program": {"index.html": {}, "tool.exe": {}},
		"a hidden":  {"index.html": {}, ".env": {}},
		"too large": {"index.html": {}, "app.js": {Data: make([]byte, maxAsset+1)}},
	} {
		if _, err := handlerOf(files); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// loads matches what a page of HTML loads.
var loads = regexp.MustCompile(`(?:src|href)="([^"]*)"`)

// TestEmbedded: the program's own console is complete. What its first page loads is among its
// files and small, and nothing in it is of a kind that the content policy forbids.
func TestEmbedded(t *testing.T) {
	h, err := Handler()
	if err != nil {
		t.Fatal(err)
	}
	const firstPage = 200_000 // bytes, compressed
	page := text(t, get(t, h, "GET", Path).Body)
	for _, bad := range []string{"<style", " style=", " onclick=", " onload=", "http:", "https:", "<script>"} {
		if strings.Contains(page, bad) {
			t.Errorf("the index has %q, which the content policy forbids", bad)
		}
	}
	sent := len(text(t, get(t, h, "GET", Path, "Accept-Encoding", "gzip").Body))
	for _, found := range loads.FindAllStringSubmatch(page, -1) {
		if strings.HasPrefix(found[1], "data:") {
			continue
		}
		target, err := url.Parse(Path)
		if err == nil {
			target, err = target.Parse(found[1])
		}
		if err != nil {
			t.Fatal(err)
		}
		r := get(t, h, "GET", target.Path, "Accept-Encoding", "gzip")
		if r.Code != http.StatusOK || target.Host != "" {
			t.Errorf("the index loads %s: status %d", found[1], r.Code)
		}
		sent += len(text(t, r.Body))
	}
	if sent > firstPage {
		t.Errorf("the first page has %d bytes compressed, at most %d", sent, firstPage)
	}
}
