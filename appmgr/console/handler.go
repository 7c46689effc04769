package console

import (
	"bytes"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

// policy is the Content-Security-Policy of all answers: nothing runs, and nothing is asked,
// that does not come from the console's own origin.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// protections are the headers of all answers.
var protections = map[string]string{
	"Content-Security-Policy":      policy,
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Permissions-Policy":           "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}

// protect sets the headers that all answers have.
func protect(h http.Header) {
	for key, value := range protections {
		h.Set(key, value)
	}
}

// handler serves the console's files below Path.
type handler struct{ assets map[string]*asset }

// Handler serves the console below Path. Its files are part of the program, compressed once
// here.
func Handler() (http.Handler, error) {
	files, err := fs.Sub(embedded, "assets")
	if err != nil {
		return nil, err
	}
	return handlerOf(files)
}

func handlerOf(files fs.FS) (http.Handler, error) {
	assets, err := load(files)
	if err != nil {
		return nil, err
	}
	return &handler{assets}, nil
}

// Serves reports whether a path is one of the console's. The root leads to the console.
func Serves(path string) bool {
	return strings.HasPrefix(path, Path) || path == strings.TrimSuffix(Path, "/") || path == "/"
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the console is only read", http.StatusMethodNotAllowed)
		return
	}
	if !strings.HasPrefix(r.URL.Path, Path) {
		http.Redirect(w, r, Path, http.StatusTemporaryRedirect)
		return
	}
	a := h.find(strings.TrimPrefix(r.URL.Path, Path))
	if a == nil {
		http.Error(w, "no such file of the console", http.StatusNotFound)
		return
	}
	a.serve(w, r)
}

// find returns the file of a name. A name that is no file's is a page of the app, which the
// script of the index shows; a missing script or style is missing.
func (h *handler) find(name string) *asset {
	if a := h.assets[name]; a != nil {
		return a
	}
	if types[path.Ext(name)] != "" {
		return nil
	}
	return h.assets[index]
}

// serve answers with the file, in the form that the caller takes.
func (a *asset) serve(w http.ResponseWriter, r *http.Request) {
	f := a.plain
	h := w.Header()
	h.Set("Vary", "Accept-Encoding")
	if len(a.zipped.body) > 0 && takesGzip(r.Header.Get("Accept-Encoding")) {
		f = a.zipped
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Type", a.media)
	h.Set("Content-Length", strconv.Itoa(len(f.body)))
	h.Set("ETag", f.tag)
	h.Set("Cache-Control", "no-cache")
	if a.lasting {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.body))
}

// takesGzip reports whether an Accept-Encoding header takes gzip.
func takesGzip(accepted string) bool {
	for one := range strings.SplitSeq(accepted, ",") {
		coding, params, _ := strings.Cut(one, ";")
		if coding = strings.TrimSpace(coding); !strings.EqualFold(coding, "gzip") && coding != "*" {
			continue
		}
		q, given := strings.CutPrefix(strings.ReplaceAll(params, " ", ""), "q=")
		weight, err := strconv.ParseFloat(q, 64)
		return !given || err == nil && weight > 0
	}
	return false
}
