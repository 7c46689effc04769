package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLocalRefusals: an invalid cluster is wrong usage, and nothing is made of it. Tests
// beside devcluster/local and terraform/local cover valid clusters.
func TestLocalRefusals(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	s := newShell(t)
	for line, want := range map[string]struct {
		code int
		text string
	}{
		`local apply {}`:                               {exitUsage, "dir: \"\", must be a clean absolute path"},
		`local apply {"colour":"blue"}`:                {exitUsage, `unknown field "colour"`},
		`local apply {}{}`:                             {exitUsage, "something follows it"},
		`local apply`:                                  {exitUsage, "JSON"},
		`local up --regions US --dir ` + dir:           {exitUsage, `regions: "US"`},
		`local up --app-managers 11 --dir ` + dir:      {exitUsage, "app_managers: 11"},
		`local up --site-port 8000 --dir ` + dir:       {exitUsage, "must lie 300 apart"},
		`local up --site-settings data=/ --dir ` + dir: {exitUsage, `site_settings: "data"`},
		`local drain us-1 --dir ` + dir:                {exitFailed, "say what is wanted with: samya local up --dir " + dir},
		`local remove us-1 --lost --dir ` + dir:        {exitFailed, "there is no cluster in " + dir},
		`local replace --dir ` + dir:                   {exitUsage, "SITE"},
		`local status --dir ` + dir:                    {exitFailed, "bring one up with: samya local up --dir " + dir},
	} {
		code, stdout, stderr := s.run(line)
		if code != want.code || !strings.Contains(stderr, want.text) || stdout != "" {
			t.Errorf("samya %s: exit status %d, want %d; got %s%s, want %q", line, code, want.code, stdout, stderr, want.text)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("something was made: %v", err)
	}
	s.expect("local down --dir "+dir, exitOK, "removed "+dir+"\n")
}
