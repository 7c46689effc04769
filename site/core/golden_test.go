package core_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

var update = flag.Bool("update", false, "keep the texts in messages as test data of this build's version, unless there are some")

// textsOf is where the texts in messages of a version are kept.
func textsOf(v versions.Version) string {
	return filepath.Join("testdata", "versions", fmt.Sprint(v), "texts")
}

// TestGoldenTexts reads the texts within messages of each version: what values decide,
// and snapshots, as that version's build sent them. Encoded again they are the same, and in a cluster of
// that version this build sends none of another shape. With
// -update the texts that this build sends become the test data of its version; those of a
// version that was released are never written again.
func TestGoldenTexts(t *testing.T) {
	if *update {
		keepTexts(t, textsOf(versions.Own().Newest))
	}
	for v := versions.First; v < versions.Own().Newest || v == versions.Own().Newest && *update; v++ {
		kept, err := os.ReadFile(textsOf(v))
		if err != nil {
			t.Fatal(err)
		}
		kinds, shapes := make(map[string]int), make(map[string]bool)
		for line := range strings.Lines(string(kept)) {
			kind, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			kinds[kind]++
			shapes[shapeOfText(t, kind, []byte(text))] = true
			if again, err := core.Recode(kind, []byte(text)); err != nil || !bytes.Equal(again, []byte(text)) {
				t.Errorf("version %d, %s: %v\nkept  %s\nagain %s", v, kind, err, text, again)
			}
		}
		for _, kind := range []string{"catalogue", "catalogue-snapshot", "limit", "limit-snapshot"} {
			if kinds[kind] == 0 {
				t.Errorf("version %d has no text of kind %s", v, kind)
			}
		}
		for shape, line := range textsSent(t, v) {
			if !shapes[shape] {
				t.Errorf("in a cluster of version %d this build sends what that version never did: %s", v, line)
			}
		}
	}
}

// textsSent are the texts that a small cluster of a version sends, one of each shape.
func textsSent(t *testing.T, v versions.Version) map[string]string {
	t.Helper()
	r := newRig(t, 3, func(c *core.Config) { c.KeepChanges, c.Retention = 4, 1000 })
	for _, name := range r.names {
		r.disks[name].Version = v
		r.restart(name)
	}
	change := func(ch input.Change) {
		t.Helper()
		call := r.changeAsync("a", ch)
		r.advance(2000)
		r.wantCode(r.answer(call), answer.OK)
	}
	some := func(prefix string) {
		t.Helper()
		change(input.Change{Kind: input.CreateEntity, Name: prefix, Limit: 90, RequestID: prefix + "1"})
		change(input.Change{Kind: input.CreateEntity, Name: prefix + "/vm", Limit: 60, Parent: prefix, RequestID: prefix + "2"})
		change(input.Change{Kind: input.CreateEntity, Name: prefix + "/gpu", RequestID: prefix + "3"})
		change(input.Change{Kind: input.MoveEntity, Name: prefix + "/gpu", Parent: prefix + "/vm", RequestID: prefix + "4"})
		change(input.Change{Kind: input.SetLimit, Name: prefix, Limit: 120, RequestID: prefix + "5"})
		change(input.Change{Kind: input.SetLimit, Name: prefix, Limit: 80, Expected: 2, RequestID: prefix + "6"})
		change(input.Change{Kind: input.SetMode, Mode: "auto", RequestID: prefix + "7"})
		change(input.Change{Kind: input.DeleteEntity, Name: prefix + "/vm", Subtree: true, RequestID: prefix + "8"})
		change(input.Change{Kind: input.SetMode, Mode: "majority", Expected: r.cores["a"].Status().Mode.Decided.Version, RequestID: prefix + "9"})
	}
	some("acme")
	r.release("a", "acme", 500, "too many")
	r.cores["b"].Audit("acme")
	r.advance(10_000)
	r.cut["c"] = true
	for _, name := range []string{"one", "two", "three"} {
		change(input.Change{Kind: input.CreateEntity, Name: name, Limit: 10, RequestID: name})
	}
	r.cut["c"] = false
	r.advance(20_000)
	r.cut["c"] = true
	some("later")
	some("last")
	r.cut["c"] = false
	r.advance(20_000)
	texts := make(map[string]string)
	keep := func(entity, what string, text []byte) {
		kind := "catalogue" + what
		switch {
		case len(text) == 0:
			return
		case entity != "" && what == "":
			kind = "limit"
		case entity != "":
			kind = "limit" + what
		}
		if shape := shapeOfText(t, kind, text); texts[shape] == "" {
			texts[shape] = kind + " " + string(text) + "\n"
		}
	}
	for _, e := range r.sent {
		keep(e.Entity, "-snapshot", e.Message.Snapshot)
		if e.Message.Value != nil {
			keep(e.Entity, "", e.Message.Value.Change)
		}
	}
	return texts
}

// keepTexts writes the texts that a cluster of this build's version sends.
func keepTexts(t *testing.T, to string) {
	t.Helper()
	texts := textsSent(t, versions.Own().Newest)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		t.Fatalf("the test data of a version is written once: %v", err)
	}
	if _, err := file.WriteString(strings.Join(slices.Sorted(maps.Values(texts)), "")); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

func shapeOfText(t *testing.T, kind string, text []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return kind + shapeOf(v)
}

// shapeOf names the fields that a value of JSON has.
func shapeOf(v any) string {
	switch v := v.(type) {
	case map[string]any:
		var s strings.Builder
		for _, k := range slices.Sorted(maps.Keys(v)) {
			s.WriteString(" " + k + shapeOf(v[k]))
		}
		return "{" + s.String() + "}"
	case []any:
		shapes := make(map[string]bool)
		for _, e := range v {
			shapes[shapeOf(e)] = true
		}
		return "[" + strings.Join(slices.Sorted(maps.Keys(shapes)), ",") + "]"
	default:
		return ""
	}
}
