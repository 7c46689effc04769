package chart

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// value is a row of the table of values.
type value struct{ name, standard, meaning string }

// valuesTable returns the values of a mapping in values.yaml, below a name.
func valuesTable(t *testing.T, n *yaml.Node, below string) []value {
	t.Helper()
	var rows []value
	for i := 0; i < len(n.Content); i += 2 {
		key, v := n.Content[i], n.Content[i+1]
		name := below + key.Value
		if v.Kind == yaml.MappingNode && v.Style&yaml.FlowStyle == 0 {
			rows = append(rows, valuesTable(t, v, name+".")...)
			continue
		}
		var standard any
		if err := v.Decode(&standard); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(standard); err != nil {
			t.Fatal(err)
		}
		meaning := strings.ReplaceAll(strings.TrimPrefix(key.HeadComment, "# "), "\n# ", " ")
		// A comment of the file stands before an empty line.
		if cut := strings.LastIndex(meaning, "\n\n# "); cut >= 0 {
			meaning = meaning[cut+4:]
		}
		if meaning == "" || !strings.HasSuffix(meaning, ".") {
			t.Errorf("values.yaml: %s has no comment: %q", name, meaning)
		}
		rows = append(rows, value{name, strings.TrimSpace(b.String()), meaning})
	}
	return rows
}

// TestReadme: the chart's page has a table of all values, as values.yaml tells them, and the
// schema knows each of them.
func TestReadme(t *testing.T) {
	b, err := os.ReadFile(Dir + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	rows := valuesTable(t, doc.Content[0], "")
	if len(rows) < 60 {
		t.Fatalf("%d values; the test does not see them", len(rows))
	}
	var table strings.Builder
	table.WriteString("\n| value | default | meaning |\n|---|---|---|\n")
	for _, row := range rows {
		table.WriteString("| `" + row.name + "` | `" + row.standard + "` | " + row.meaning + " |\n")
	}
	const path = Dir + "/README.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const from, to = "<!-- values -->\n", "<!-- end of values -->"
	before, rest, _ := strings.Cut(string(page), from)
	was, after, found := strings.Cut(rest, to)
	if !found {
		t.Fatal("README.md has no place for the table")
	}
	if was != table.String()+"\n" {
		if *update {
			if err := os.WriteFile(path, []byte(before+from+table.String()+"\n"+to+after), 0o644); err != nil {
				t.Fatal(err)
			}
		} else {
			t.Errorf("%s is stale: make chart CHART_FLAGS=-update", path)
		}
	}
	// The schema names what values.yaml has.
	s, err := os.ReadFile(Dir + "/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var root map[string]any
	if err := json.Unmarshal(s, &root); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		at := root
		for name := range strings.SplitSeq(row.name, ".") {
			if at, _ = asMap(at["properties"])[name].(map[string]any); at == nil {
				t.Errorf("the schema does not know %s", row.name)
				break
			}
		}
	}
}
