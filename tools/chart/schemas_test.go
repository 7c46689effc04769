package chart

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// schemaModules is the module that pins the modules with schemas.
const schemaModules = "crds"

// moduleDir returns the directory of a module that schemaModules pins, in the module cache.
func moduleDir(module string) (string, error) {
	cmd := exec.Command("go", "mod", "download", "-json", module)
	cmd.Dir = schemaModules
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("find the module %s: %w", module, err)
	}
	var m struct{ Dir string }
	if err := json.Unmarshal(out, &m); err != nil {
		return "", fmt.Errorf("find the module %s: %w", module, err)
	}
	return m.Dir, nil
}

// customFiles returns the files of the custom resources that the chart has objects of.
func customFiles() ([]string, error) {
	certManager, err := moduleDir("github.com/cert-manager/cert-manager")
	if err != nil {
		return nil, err
	}
	operator, err := moduleDir("github.com/prometheus-operator/prometheus-operator")
	if err != nil {
		return nil, err
	}
	return []string{
		filepath.Join(certManager, "deploy/crds/cert-manager.io_certificates.yaml"),
		filepath.Join(certManager, "deploy/crds/cert-manager.io_issuers.yaml"),
		filepath.Join(operator, "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml"),
		filepath.Join(operator, "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml"),
	}, nil
}

// writeSchemas writes a strict JSON schema of each kind of Kubernetes and of the custom
// resources into dir, out of what their own modules publish. Strict: a schema refuses
// fields that it does not name.
func writeSchemas(dir string) error {
	kubernetes, err := moduleDir("k8s.io/kubernetes")
	if err != nil {
		return err
	}
	for _, api := range []string{"api__v1", "apis__apps__v1", "apis__autoscaling__v2", "apis__batch__v1", "apis__networking.k8s.io__v1", "apis__policy__v1"} {
		if err := writeKinds(filepath.Join(kubernetes, "api/openapi-spec/v3", api+"_openapi.json"), dir); err != nil {
			return err
		}
	}
	custom, err := customFiles()
	if err != nil {
		return err
	}
	for _, path := range custom {
		if err := writeCustom(path, dir); err != nil {
			return err
		}
	}
	return nil
}

// groupVersionKind is the extension that tells the kind of a schema.
type groupVersionKind struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

// file returns the name of the schema of a kind, as the validator looks for it.
func (k groupVersionKind) file() string {
	group, _, _ := strings.Cut(k.Group, ".")
	if group != "" {
		group = "-" + group
	}
	return strings.ToLower(k.Kind) + group + "-" + strings.ToLower(k.Version) + ".json"
}

// writeKinds writes the schemas of the kinds of an OpenAPI document.
func writeKinds(path, dir string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var doc struct {
		Components struct {
			Schemas map[string]map[string]any
		}
	}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(b), "#/components/schemas/", "#/definitions/")), &doc); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	kinds := make(map[string][]groupVersionKind)
	for name, schema := range doc.Components.Schemas {
		raw, err := json.Marshal(schema["x-kubernetes-group-version-kind"])
		if err != nil {
			return err
		}
		var of []groupVersionKind
		if err := json.Unmarshal(raw, &of); err != nil {
			return fmt.Errorf("%s: %s: %w", path, name, err)
		}
		kinds[name] = of
		strict(schema)
	}
	for name, of := range kinds {
		// Kinds that many groups share are parts of requests.
		if len(of) != 1 {
			continue
		}
		whole := maps.Clone(doc.Components.Schemas[name])
		whole["definitions"] = doc.Components.Schemas
		if err := writeSchema(filepath.Join(dir, of[0].file()), whole); err != nil {
			return err
		}
	}
	return nil
}

// writeCustom writes the schemas of the versions of a custom resource.
func writeCustom(path, dir string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var definition struct {
		Spec struct {
			Group    string
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Schema struct {
					OpenAPIV3Schema map[string]any `yaml:"openAPIV3Schema"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(b, &definition); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, v := range definition.Spec.Versions {
		schema := v.Schema.OpenAPIV3Schema
		strict(schema)
		// The definition leaves metadata to the server.
		at(schema, "properties", "metadata").(map[string]any)["additionalProperties"] = true
		kind := groupVersionKind{Group: definition.Spec.Group, Version: v.Name, Kind: definition.Spec.Names.Kind}
		if err := writeSchema(filepath.Join(dir, kind.file()), schema); err != nil {
			return err
		}
	}
	return nil
}

func writeSchema(path string, schema map[string]any) error {
	b, err := json.Marshal(schema)
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}

// strict has the objects of a schema refuse fields without a name.
func strict(v any) {
	switch v := v.(type) {
	case map[string]any:
		properties, named := v["properties"].(map[string]any)
		if _, said := v["additionalProperties"]; named && !said && v["x-kubernetes-preserve-unknown-fields"] != true {
			v["additionalProperties"] = false
		}
		for key, child := range v {
			if key != "properties" {
				strict(child)
			}
		}
		for _, child := range properties {
			strict(child)
		}
		if v["x-kubernetes-int-or-string"] == true {
			delete(v, "type")
		}
	case []any:
		for _, child := range v {
			strict(child)
		}
	}
}
