package appmgr

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/methods"
)

var update = flag.Bool("update", false, "write openapi.json anew")

// document returns the OpenAPI document as tests hold the handlers against it.
var document = sync.OnceValues(func() (*openapi3.T, error) {
	for _, media := range []string{watchType, "application/yaml", "text/plain"} {
		openapi3filter.RegisterBodyDecoder(media, openapi3filter.FileBodyDecoder)
	}
	openapi3filter.RegisterBodyDecoder(apierr.ProblemType, openapi3filter.JSONBodyDecoder)
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData(openAPIYAML)
	if err != nil {
		return nil, err
	}
	return doc, doc.Validate(loader.Context)
})

// TestOpenAPIDocument: the document is valid, has exactly the operations of the API, and
// every reason with its status. Its JSON form says the same.
func TestOpenAPIDocument(t *testing.T) {
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, m := range methods.All() {
		for _, route := range m.Routes {
			want[route.Verb+" "+route.Path+" "+route.Name] = true
			if handlers[route.Name] == nil {
				t.Errorf("%s has no handler", route.Name)
			}
		}
	}
	if len(want) != len(handlers) {
		t.Errorf("%d handlers of %d routes", len(handlers), len(want))
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			key := method + " " + path + " " + op.OperationID
			if !want[key] {
				t.Errorf("the document has %s, and there is no such operation", key)
			}
			delete(want, key)
			for status, response := range op.Responses.Map() {
				if code, _ := strconv.Atoi(status); code >= 400 && response.Ref != "#/components/responses/Problem"+status {
					t.Errorf("%s: status %s is %q", key, status, response.Ref)
				}
			}
		}
	}
	for key := range want {
		t.Errorf("the document has no %s", key)
	}
	var reasons []string
	for _, r := range apierr.Reasons() {
		reasons = append(reasons, string(r))
		if doc.Components.Responses["Problem"+strconv.Itoa(r.HTTPStatus())] == nil {
			t.Errorf("the document has no status %d, that of %s", r.HTTPStatus(), r)
		}
	}
	var told []string
	for _, v := range doc.Components.Schemas["Problem"].Value.Properties["reason"].Value.Enum {
		told = append(told, v.(string))
	}
	if !slices.Equal(told, reasons) {
		t.Errorf("the document has the reasons %q, there are %q", told, reasons)
	}

	var asJSON bytes.Buffer
	enc := json.NewEncoder(&asJSON)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(doc); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("openapi.json", asJSON.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(asJSON.Bytes(), openAPIJSON) {
		t.Error("openapi.json is not what openapi.yaml says; run this test with -update")
	}
}

// hold checks a request and its answer against the document. Only a request that matches
// the document may succeed, and every answer must match it.
func hold(t *testing.T, req *http.Request, body string, rec *httptest.ResponseRecorder) {
	t.Helper()
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	res, entity, err := parsePath(req.URL.EscapedPath())
	if err != nil {
		return
	}
	path := doc.Paths.Value(res)
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
