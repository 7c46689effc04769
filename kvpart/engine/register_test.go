package engine

import (
	"errors"
	"strings"
	"testing"
)

// alone runs a test with backends of its own.
func alone(t *testing.T) {
	t.Helper()
	backends.Lock()
	defer backends.Unlock()
	before := backends.byName
	backends.byName = nil
	t.Cleanup(func() {
		backends.Lock()
		defer backends.Unlock()
		backends.byName = before
	})
}

var none = Factory{Open: func(Config) (Engine, error) { return nil, errors.New("of a test") }}

// The error of a missing backend names the backends that are there, and the import of a
// backend that samya has.
func TestLookupNamesTheImport(t *testing.T) {
	alone(t)
	Register("tape", none)
	for name, want := range map[string]string{
		"bbolt": `unknown backend "bbolt": registered are tape; import _ "github.com/samya-db/samya/kvpart/engine/bbolt"`,
		"disk":  `unknown backend "disk": registered are tape; the package of another must be imported`,
	} {
		if _, err := Lookup(name); !errors.Is(err, ErrBackend) || err.Error() != want {
			t.Errorf("%v", err)
		}
	}
	if _, err := Lookup("tape"); err != nil {
		t.Error(err)
	}
}

func TestRegisterPanics(t *testing.T) {
	alone(t)
	Register("tape", none)
	for name, f := range map[string]Factory{"tape": none, "": none, "a-b": none, "Disk": none, "disk": {}} {
		func() {
			defer func() {
				if v, ok := recover().(string); !ok || !strings.Contains(v, "engine: backend") {
					t.Errorf("%q: %v", name, v)
				}
			}()
			Register(name, f)
		}()
	}
}
