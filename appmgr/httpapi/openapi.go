package httpapi

import (
	_ "embed" // the document is part of the program
	"net/http"
)

// The API as an OpenAPI document. The JSON form is made from the YAML form, see
// TestOpenAPIDocument.
var (
	//go:embed openapi.yaml
	openAPIYAML []byte
	//go:embed openapi.json
	openAPIJSON []byte
)

func (a *api) openAPIYAML(w http.ResponseWriter, r *http.Request, _ string) error {
	return writeDocument(w, r, "application/yaml", openAPIYAML)
}

func (a *api) openAPIJSON(w http.ResponseWriter, r *http.Request, _ string) error {
	return writeDocument(w, r, "application/json", openAPIJSON)
}

func writeDocument(w http.ResponseWriter, r *http.Request, media string, document []byte) error {
	if _, err := query(r); err != nil {
		return err
	}
	w.Header().Set("Content-Type", media)
	// A write fails only where the client has gone; nobody is left to be told.
	_, _ = w.Write(document)
	return nil
}
