package appmgr

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
)

// described returns the OpenAPI document as tests hold the handlers against it.
var described = sync.OnceValues(func() (*openapi3.T, error) {
	for _, media := range []string{"application/x-ndjson", "application/yaml", "text/plain"} {
		openapi3filter.RegisterBodyDecoder(media, openapi3filter.FileBodyDecoder)
	}
	openapi3filter.RegisterBodyDecoder(apierr.ProblemType, openapi3filter.JSONBodyDecoder)
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromFile("httpapi/openapi.yaml")
	if err != nil {
		return nil, err
	}
	return doc, doc.Validate(loader.Context)
})

// hold checks a request and its answer against the document. Only a request that matches
// the document may succeed, and every answer must match it.
func hold(t *testing.T, req *http.Request, body string, rec *httptest.ResponseRecorder) {
	t.Helper()
	doc, err := described()
	if err != nil {
		t.Fatal(err)
	}
	res, entity := resourceOf(req.URL.EscapedPath())
	path := doc.Paths.Value(res)
	if path == nil || entity != "" && name.Entity("name", entity) != nil {
		return
	}
	method := req.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	op := path.GetOperation(method)
	if op == nil {
		if rec.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s %s: status %d, and the document has no such method", req.Method, req.URL, rec.Code)
		}
		return
	}
	again := req.Clone(t.Context())
	again.Body = io.NopCloser(strings.NewReader(body))
	if body != "" && again.Header.Get("Content-Type") == "" {
		again.Header.Set("Content-Type", "application/json")
	}
	in := &openapi3filter.RequestValidationInput{
		Request: again, PathParams: map[string]string{"name": entity},
		Route: &routers.Route{Spec: doc, Path: res, PathItem: path, Method: method, Operation: op},
		Options: &openapi3filter.Options{
			MultiError: true, IncludeResponseStatus: true,
			// Package access tests who may ask.
			AuthenticationFunc: openapi3filter.NoopAuthenticationFunc,
		},
	}
	if rec.Code < 400 {
		if err := openapi3filter.ValidateRequest(t.Context(), in); err != nil {
			t.Errorf("%s %s %s was done, against the document: %v", req.Method, req.URL, body, err)
		}
	}
	if req.Method == http.MethodHead {
		return
	}
	err = openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: rec.Code, Header: rec.Header(),
		Body: io.NopCloser(bytes.NewReader(rec.Body.Bytes())), Options: in.Options,
	})
	if err != nil {
		t.Errorf("%s %s: the answer %d is against the document: %v", req.Method, req.URL, rec.Code, err)
	}
}

// resourceOf returns the path in the document that an escaped path matches, and its
// entity.
func resourceOf(escaped string) (res, entity string) {
	const entities = "/v1/entities/"
	rest, ok := strings.CutPrefix(escaped, entities)
	if !ok {
		return escaped, ""
	}
	entity, err := url.PathUnescape(rest)
	if err != nil {
		return "", ""
	}
	res = entities + "{name}"
	if i := strings.LastIndexByte(entity, ':'); i >= 0 {
		entity, res = entity[:i], res+entity[i:]
	}
	return res, entity
}
