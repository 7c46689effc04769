package httpapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/methods"
)

var update = flag.Bool("update", false, "write openapi.json anew")

// document returns the OpenAPI document as tests hold the handlers against it.
var document = sync.OnceValues(func() (*openapi3.T, error) {
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
				if decides := op.Tags[0] == "rate limits" && status == "429"; decides {
					continue // a decision
				}
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

// TestDocumentHasEveryField: the document has each field that the handlers read, and the
// handlers read each field of a request, by its kind or in their own way.
func TestDocumentHasEveryField(t *testing.T) {
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	// Fields with a reader of their own.
	own := []string{"BatchRequest.operations", "GetEntityRequest.consistency"}
	for _, m := range methods.All() {
		found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(strings.ReplaceAll(m.Full[1:], "/", ".")))
		if err != nil || m.Full == methods.ShouldRateLimit {
			continue // served over HTTP only, or read by protobuf itself
		}
		in := found.(protoreflect.MethodDescriptor).Input()
		kind, err := protoregistry.GlobalTypes.FindMessageByName(in.FullName())
		if err != nil {
			t.Fatal(err)
		}
		readers := fieldsOf(kind.New().Interface())
		for _, route := range m.Routes {
			item := doc.Paths.Value(route.Path)
			if item == nil || item.GetOperation(route.Verb) == nil {
				t.Errorf("the document has no %s %s", route.Verb, route.Path)
				continue
			}
			op := item.GetOperation(route.Verb)
			described := map[string]bool{}
			if strings.Contains(route.Path, "{name}") {
				described["name"], described["entity"] = true, true
			}
			for _, p := range op.Parameters {
				described[p.Value.Name] = true
			}
			if op.RequestBody != nil {
				for field := range op.RequestBody.Value.Content["application/json"].Schema.Value.Properties {
					described[field] = true
				}
			}
			for i := range in.Fields().Len() {
				field := string(in.Fields().Get(i).Name())
				whole := string(in.Name()) + "." + field
				switch {
				case field == "relay", field == "acknowledged", route.Name == "VoidLease" && field == "tokens":
				case !described[field]:
					t.Errorf("%s: the document has no %s", route.Name, field)
				case readers[field] == nil && !slices.Contains(own, whole):
					t.Errorf("%s: nothing reads %s; a number or duration needs its bounds", route.Name, field)
				}
			}
		}
	}
}
