package buildinfo

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestRead(t *testing.T) {
	i := Read("v1.2.3", "0123456789abcdef")
	if i.Version != "v1.2.3" || i.Revision != "0123456789ab" || i.Modified || !strings.HasPrefix(i.Go, "go") {
		t.Errorf("%+v", i)
	}
	if got := i.String(); !strings.HasPrefix(got, "samya v1.2.3 0123456789ab, go") {
		t.Errorf("%q", got)
	}
	if i := Read("", ""); i.Version == "" || i.Go == "" {
		t.Errorf("a development build has empty parts: %+v", i)
	}
}

func TestString(t *testing.T) {
	for want, i := range map[string]Info{
		"samya v1, go1":               {Version: "v1", Go: "go1"},
		"samya v1 abc, go1":           {Version: "v1", Revision: "abc", Go: "go1"},
		"samya v1 abc, modified, go1": {Version: "v1", Revision: "abc", Modified: true, Go: "go1"},
	} {
		if got := i.String(); got != want {
			t.Errorf("%+v: %q, want %q", i, got, want)
		}
	}
}

// TestCollector: an unknown part has a value all the same, as a label without a value is
// no label.
func TestCollector(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(Info{Version: "v1"}.Collector())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := families[0].String()
	for _, want := range []string{"samya_build_info", `"v1"`, `"unknown"`, "value:1"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
}
