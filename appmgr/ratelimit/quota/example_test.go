package quota

import (
	"os"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/samya-db/samya/internal/ratelimit/rules"
)

// under returns the first value of a field within a document.
func under(v any, field string) any {
	switch v := v.(type) {
	case map[string]any:
		if found, ok := v[field]; ok {
			return found
		}
		for _, below := range v {
			if found := under(below, field); found != nil {
				return found
			}
		}
	case []any:
		for _, below := range v {
			if found := under(below, field); found != nil {
				return found
			}
		}
	}
	return nil
}

// TestExample: the bucket of the example of Envoy's filter has a rule in the example of limits.
func TestExample(t *testing.T) {
	const dir = "../../../examples/envoy/"
	text, err := os.ReadFile(dir + "envoy-quota.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var envoy map[string]any
	if err := yaml.Unmarshal(text, &envoy); err != nil {
		t.Fatal(err)
	}
	builder, _ := under(under(envoy, "bucket_id_builder"), "bucket_id_builder").(map[string]any)
	id := map[string]string{}
	for key, value := range builder {
		id[key] = "acme"
		if s, ok := under(value, "string_value").(string); ok {
			id[key] = s
		}
	}
	limits, err := os.ReadFile(dir + "ratelimit/edge.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config, err := rules.Parse(rules.File{Name: "edge.yaml", Data: limits})
	if err != nil {
		t.Fatal(err)
	}
	if m := config.MatchSet("edge", id); m == nil || m.Limit != 100 || len(id) != 2 {
		t.Errorf("%v has the rule %+v", id, m)
	}
}
