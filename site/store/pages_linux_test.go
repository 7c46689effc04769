package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/store"
)

// TestLoadLeavesNoPages: what a start reads of the base does not stay in the memory of
// the process.
func TestLoadLeavesNoPages(t *testing.T) {
	const entities = 20_000
	o := store.Options{Dir: t.TempDir(), Cluster: "c", Site: "a", Members: []core.SiteID{"a"}}
	s, err := store.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	var r stored.Records
	for i := range entities {
		name := fmt.Sprintf("acme/entity-%06d", i)
		r.Entities = append(r.Entities, stored.Entity{Name: name, Generation: uint64(i + 1)})
		r.Books = append(r.Books, stored.Books{Name: name, Generation: uint64(i + 1)})
	}
	if err := s.Commit(&r); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = store.Open(o); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	got, err := s.Load()
	if err != nil || len(got.Entities) != entities {
		t.Fatalf("%d entities: %v", len(got.Entities), err)
	}
	info, err := os.Stat(filepath.Join(o.Dir, "site.db"))
	if err != nil {
		t.Fatal(err)
	}
	if held, most := residentKB(t, "site.db"), info.Size()/1024/16; held > most {
		t.Errorf("%d kB of a file of %d kB stay in memory, want at most %d", held, info.Size()/1024, most)
	}
}

// residentKB returns how much of the mappings of a file lies in this process's memory
// (proc_pid_smaps(5)).
func residentKB(t *testing.T, file string) int64 {
	t.Helper()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skipf("needs /proc: %v", err)
	}
	var sum int64
	mapped, found := false, false
	for line := range strings.Lines(string(smaps)) {
		if key, _, _ := strings.Cut(line, " "); !strings.HasSuffix(key, ":") {
			mapped = strings.HasSuffix(strings.TrimSpace(line), "/"+file)
			found = found || mapped
			continue
		}
		var kb int64
		if n, _ := fmt.Sscanf(line, "Rss: %d kB", &kb); n == 1 && mapped {
			sum += kb
		}
	}
	if !found {
		t.Fatalf("%s is not mapped", file)
	}
	return sum
}
