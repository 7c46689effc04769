package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
)

//go:embed all:assets
var embedded embed.FS

const (
	// Path is the path of the console.
	Path = "/console/"
	// index is the page that all paths of the app's own get.
	index = "index.html"
	// maxAsset bounds a file, in bytes, before compression.
	maxAsset = 8 << 20
)

// types are the media types of the files that the console may have, by extension. A file of
// another kind is a mistake.
var types = map[string]string{
	".html":        "text/html; charset=utf-8",
	".js":          "text/javascript; charset=utf-8",
	".css":         "text/css; charset=utf-8",
	".svg":         "image/svg+xml",
	".json":        "application/json",
	".map":         "application/json",
	".txt":         "text/plain; charset=utf-8",
	".webmanifest": "application/manifest+json",
	".png":         "image/png",
	".ico":         "image/x-icon",
	".woff2":       "font/woff2",
}

// packed are the extensions of files that are compressed already.
var packed = []string{".png", ".ico", ".woff2"}

// hashed matches names that change with their contents, such as app-3f2a9c1b.js.
var hashed = regexp.MustCompile(`[-.][A-Za-z0-9_-]{8,}\.[a-z0-9]+$`)

// form is an encoding of a file, with its entity tag.
type form struct {
	body []byte
	tag  string
}

// asset is a file of the console.
type asset struct {
	media string
	// lasting: another content would have another name.
	lasting bool
	plain   form
	// zipped has no body if compression does not pay.
	zipped form
}

// load reads all files of the console, and compresses them once for all requests.
func load(files fs.FS) (map[string]*asset, error) {
	all := make(map[string]*asset)
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		a, err := newAsset(name, body)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all[name] = a
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the console's files: %w", err)
	}
	if all[index] == nil {
		return nil, fmt.Errorf("read the console's files: no %s", index)
	}
	return all, nil
}

func newAsset(name string, body []byte) (*asset, error) {
	kind := path.Ext(name)
	a := &asset{media: types[kind], lasting: name != index && hashed.MatchString(name)}
	switch {
	case a.media == "":
		return nil, fmt.Errorf("files of the kind %q are not served", kind)
	case len(body) > maxAsset:
		return nil, fmt.Errorf("%d bytes, at most %d", len(body), maxAsset)
	}
	sum := sha256.Sum256(body)
	tag := base64.RawURLEncoding.EncodeToString(sum[:12])
	a.plain = form{body, `"` + tag + `"`}
	if slices.Contains(packed, kind) {
		return a, nil
	}
	var zipped bytes.Buffer
	w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if zipped.Len() < len(body) {
		a.zipped = form{zipped.Bytes(), `"` + tag + `-gzip"`}
	}
	return a, nil
}
