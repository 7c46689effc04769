package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// fixtures returns the files of settings in testdata.
func fixtures(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/config/" + dir + "/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no %s fixtures: %v", dir, err)
	}
	return files
}

// TestBadSettings: check tells the faults of each file as the .txt beside it, and a
// process refuses to start with the same words. Run it with -update and look.
func TestBadSettings(t *testing.T) {
	for _, file := range fixtures(t, "bad") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			s := newShell(t)
			delete(s.env, "SAMYA_ADDR")
			code, stdout, stderr := s.run("config check " + file)
			if code != exitUsage || stdout != "" {
				t.Errorf("exit status %d, %q", code, stdout)
			}
			golden(t, strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".yaml")+".txt", stderr)
			text, _, _ := strings.Cut(stderr, "\n  docs/configuration.md")
			started := 0
			for _, line := range []string{"site --config ", "appmgr --config ", "sites --config "} {
				code, _, stderr := s.run(line + file)
				if first, _, _ := strings.Cut(stderr, "\n"); code == exitUsage && strings.Contains(text, strings.TrimPrefix(first, "samya: ")) {
					started++
				}
			}
			if started == 0 {
				t.Errorf("no process refuses it with these words: %s", text)
			}
		})
	}
}

func TestGoodSettings(t *testing.T) {
	for _, file := range fixtures(t, "good") {
		want := map[string]string{
			"all.yaml": "site, appmgr, client", "site.yaml": "site", "appmgr.yaml": "appmgr", "client.yaml": "client", "shared.yaml": "site",
		}[filepath.Base(file)]
		s := newShell(t)
		s.env["SAMYA_SITE_NAME"] = "" // counts as none
		if strings.HasSuffix(file, "shared.yaml") {
			s.env["SAMYA_SITE_NAME"] = "us"
		}
		s.expect("config check "+file, exitOK, file+": ok: "+want+"\n")
	}
}

// TestCheckIsAStart: a check listens nowhere and leaves nothing behind.
func TestCheckIsAStart(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := t.TempDir()
	sh := newShell(t)
	for _, line := range []string{"certs ca --dir ", "certs site us --dir "} {
		if code, _, stderr := sh.run(line + dir); code != exitOK {
			t.Fatal(stderr)
		}
	}
	file, access := filepath.Join(dir, "samya.yaml"), filepath.Join(dir, "access.yaml")
	settings := strings.NewReplacer("DIR", dir, "ADDR", l.Addr().String()).Replace(`
site:
  {name: us, members: [us], data: DIR/data, grpc: "ADDR", http: "ADDR", access-file: DIR/access.yaml,
   tls-ca: DIR/ca.pem, tls-cert: DIR/site-us.pem, tls-key: DIR/site-us-key.pem}
appmgr: {name: am, http: "ADDR", access-file: DIR/access.yaml, audit-file: DIR/audit}
`)
	callers := fmt.Sprintf("callers:\n  - {name: root, role: admin, token_sha256: %064x}\n", 1)
	if err := errors.Join(os.WriteFile(file, []byte(settings), 0o600), os.WriteFile(access, []byte(callers), 0o600)); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	sh.expect("config check "+file, exitOK, file+": ok: site, appmgr\n")
	if after, err := os.ReadDir(dir); err != nil || len(after) != len(before) {
		t.Errorf("%v, %v", after, err)
	}
}

func TestCheckTellsOfEveryFile(t *testing.T) {
	s := newShell(t)
	code, stdout, stderr := s.run("config check /no/such/file testdata/config/good/site.yaml testdata/config/bad/kind.yaml")
	if code != exitUsage || !strings.Contains(stderr, "/no/such/file: no such file") || !strings.Contains(stderr, "bad/kind.yaml:") ||
		stdout != "testdata/config/good/site.yaml: ok: site\n" {
		t.Errorf("exit status %d, %q, %q", code, stdout, stderr)
	}
	if code, _, stderr := s.run("config check"); code != exitUsage || !strings.Contains(stderr, "no file, want at least one") {
		t.Errorf("exit status %d, %q", code, stderr)
	}
}

func TestConfigShow(t *testing.T) {
	s := newShell(t)
	s.env["SAMYA_SITE_PRESET"] = "lan"
	code, stdout, stderr := s.run("config show site --config testdata/config/good/site.yaml --log-level debug --takeover-time 2s")
	if code != exitOK {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	shown := regexp.MustCompile(` +#`).ReplaceAllString(stdout, " #")
	for _, want := range []string{
		"  name: us # testdata/config/good/site.yaml:3\n",
		"  preset: lan # SAMYA_SITE_PRESET\n",
		"  collect-time: 150ms # preset lan\n",
		"  takeover-time: 2s # --takeover-time\n",
		"  log-level: debug # --log-level\n",
		"  max-requests: 18000000 # default\n",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("no %q in\n%s", want, shown)
		}
	}
	// A site can start with the shown settings.
	file := filepath.Join(t.TempDir(), "shown.yaml")
	if err := os.WriteFile(file, []byte(stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	s.expect("config check "+file, exitOK, file+": ok: site\n")
	_, stdout, _ = s.run("config show client --json --config " + file)
	shown = regexp.MustCompile(` +#`).ReplaceAllString(stdout, " #")
	if !strings.HasPrefix(shown, "client:\n  addr: \""+s.addr+"\" # SAMYA_ADDR\n") || !strings.Contains(shown, "  json: true # --json\n") {
		t.Errorf("shown is\n%s", shown)
	}
	if code, _, stderr := s.run("config show appmgr --config " + file); code != exitUsage || !strings.Contains(stderr, "appmgr: no such key") {
		t.Errorf("exit status %d, %s", code, stderr)
	}
}

// TestClientsTakeTheFile: every client command takes the file. Flags of a command's own
// are no keys.
func TestClientsTakeTheFile(t *testing.T) {
	s := newShell(t)
	delete(s.env, "SAMYA_ADDR")
	file := filepath.Join(t.TempDir(), "samya.yaml")
	s.env["SAMYA_CONFIG"] = file
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("client: {addr: \"" + s.addr + "\"}\n")
	s.expect("acquire acme/vm 30", exitOK, "acquired 30 of acme/vm at us; 4970 left there\n")
	s.expect("entity create a --limit 3", exitOK, "created a with limit 3\n")
	write("client: {addr: \"http://x/y\"}\n")
	s.expect("sites", exitUsage, "samya: "+file+":1: client.addr: address \"http://x/y\": nothing may follow the port; want http://host:port\n  see samya sites --help\n")
	s.expect("site inspect", exitUsage, "samya: "+file+":1: client.addr: address \"http://x/y\": nothing may follow the port; want http://host:port\n  see samya site inspect --help\n")
	// A site's file is no hindrance.
	write("site: {name: us}\n")
	s.env["SAMYA_ADDR"] = s.addr
	s.expect("release acme/vm 30", exitOK, "released 30 of acme/vm at us; 5000 left there\n")
	write("client: {limit: 3}\n")
	if code, _, stderr := s.run("entity create b"); code != exitUsage || !strings.HasPrefix(stderr, "samya: "+file+":1: client.limit: no such key; ") {
		t.Errorf("exit status %d: %s", code, stderr)
	}
	// A command that takes no file does not look at the file.
	if code, _, stderr := s.run("version"); code != exitOK {
		t.Errorf("exit status %d: %s", code, stderr)
	}
}

// TestEverySettingStandsInTheFile: each flag of each kind can be set in the file and
// takes effect. A value of the wrong type is told with its line.
func TestEverySettingStandsInTheFile(t *testing.T) {
	s := newShell(t)
	delete(s.env, "SAMYA_ADDR")
	file := filepath.Join(t.TempDir(), "samya.yaml")
	for _, kind := range new(program).kinds() {
		keys := kind.Keys()
		if len(keys) < 3 {
			t.Errorf("%d settings of %s", len(keys), kind.Name)
		}
		for _, f := range keys {
			value, wrong := example(t, f)
			if err := os.WriteFile(file, []byte(kind.Name+":\n  "+f.Name+": "+value+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, stdout, stderr := s.run("config show " + kind.Name + " --config " + file)
			if !regexp.MustCompile(`\n  ` + f.Name + `: ` + regexp.QuoteMeta(value) + ` +# ` + regexp.QuoteMeta(file) + `:2\n`).MatchString(stdout) {
				t.Errorf("%s.%s: %s does not come through:\n%s%s", kind.Name, f.Name, value, stdout, stderr)
			}
			if err := os.WriteFile(file, []byte(kind.Name+":\n  "+f.Name+": "+wrong+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			code, _, stderr := s.run("config check " + file)
			if code != exitUsage || !strings.HasPrefix(stderr, "samya: "+file+":2: "+kind.Name+"."+f.Name) {
				t.Errorf("%s.%s: %s: exit status %d: %s", kind.Name, f.Name, wrong, code, stderr)
			}
		}
	}
}

// example returns a value that a flag can have, other than its default, and a value that
// it cannot have.
func example(t *testing.T, f *pflag.Flag) (value, wrong string) {
	t.Helper()
	switch f.Value.Type() {
	case "string":
		return "some", "[some]"
	case "stringSlice", "stringArray":
		return "[some, more]", "{some: more}"
	case "bool":
		return map[string]string{"false": "true", "true": "false"}[f.DefValue], "maybe"
	case "duration":
		return "17s", "17"
	case "size":
		return "17KiB", "17 apples"
	case "int", "int32", "int64", "uint", "uint16", "uint32", "uint64":
		return "17", "many"
	case "float32", "float64":
		return "1.5", "many"
	}
	t.Fatalf("%s is of type %s, which internal/settings and this test do not know yet", f.Name, f.Value.Type())
	return "", ""
}

// TestConfigurationIsListed: docs/configuration.md is the output of the code.
func TestConfigurationIsListed(t *testing.T) {
	const page = "../../docs/configuration.md"
	_, stdout, stderr := newShell(t).run("config reference")
	if *update {
		if err := os.WriteFile(page, []byte(stdout), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(page)
	if err != nil || stdout != string(b) {
		t.Errorf("docs/configuration.md is stale (%v %s): make docs-generate", err, stderr)
	}
}

// TestExamplesOfSettings: samya can start with the files that the documentation shows.
func TestExamplesOfSettings(t *testing.T) {
	const mark = "# /etc/samya/samya.yaml\n"
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, page := range append(pages, "../../README.md") {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for rest := string(b); ; shown++ {
			before, example, ok := strings.Cut(rest, mark)
			if !ok {
				break
			}
			indent := "\n" + before[strings.LastIndexByte(before, '\n')+1:]
			example, rest, _ = strings.Cut(example, "\n\n")
			file := filepath.Join(t.TempDir(), "samya.yaml")
			if err := os.WriteFile(file, []byte(strings.ReplaceAll("\n"+example, indent, "\n")), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := newProgram().judge(t.Context(), file); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
	if shown < 2 {
		t.Errorf("%d examples; the test does not see them", shown)
	}
}

func newProgram() *program {
	return &program{lookupEnv: func(string) (string, bool) { return "", false }}
}

// TestClientRefusesTheSitesEnvironment: a command run beside a site, in the site's
// environment, does not present the site's certificate, whatever the variable's name.
func TestClientRefusesTheSitesEnvironment(t *testing.T) {
	s := newShell(t)
	s.env["SAMYA_SITE_TLS_CERT"], s.env["SAMYA_APPMGR_TLS_KEY"] = "site.crt", "site.key"
	if code, _, stderr := s.run("sites"); code != exitOK {
		t.Errorf("exit status %d: %s", code, stderr)
	}
	s.env["SAMYA_TLS_CERT"] = "site.crt"
	code, _, stderr := s.run("sites")
	for _, name := range []string{"SAMYA_TLS_CERT: ", "SAMYA_CLIENT_TLS_CERT", "SAMYA_SITE_TLS_CERT", "SAMYA_APPMGR_TLS_CERT"} {
		if code != exitUsage || !strings.Contains(stderr, name) {
			t.Errorf("exit status %d, no %s: %s", code, name, stderr)
		}
	}
	s.env["SAMYA_CLIENT_TLS_CERT"] = "client.crt"
	if code, _, stderr := s.run("sites"); code != exitUsage || !strings.Contains(stderr, "tls-ca") {
		t.Errorf("exit status %d: %s", code, stderr)
	}
	delete(s.env, "SAMYA_CLIENT_TLS_CERT")
	delete(s.env, "SAMYA_TLS_CERT")
	s.env["SAMYA_CLIENT_ADDR"], s.env["SAMYA_ADDR"] = s.env["SAMYA_ADDR"], "http://127.0.0.1:1"
	if code, _, stderr := s.run("sites"); code != exitOK {
		t.Errorf("SAMYA_CLIENT_ADDR does not go before SAMYA_ADDR: exit status %d: %s", code, stderr)
	}
}
