package local_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/samya-db/samya/terraform/tofutest"
)

var shell = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// TestDeployLocal runs every command of docs/deploy-local.md on a clone of this work
// tree, in a network of its own: the ports are the default ones.
func TestDeployLocal(t *testing.T) {
	tofu := tofutest.Built(t, "tofu")
	root := tofutest.Root(t)
	for _, name := range []string{"unshare", "ip"} {
		if _, err := exec.LookPath(name); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
	guide, err := os.ReadFile(filepath.Join(root, "docs", "deploy-local.md"))
	if err != nil {
		t.Fatal(err)
	}
	clone := filepath.Join(t.TempDir(), "samya")
	// Files of the work tree that are not committed yet belong to the clone as well.
	copied := exec.Command("sh", "-c", `mkdir -p "$1" && git -C "$2" ls-files -z --cached --others --exclude-standard | tar -C "$2" --null -T - -cf - | tar -xf - -C "$1"`, "sh", clone, root)
	if out, err := copied.CombinedOutput(); err != nil {
		t.Fatalf("clone: %v\n%s", err, out)
	}
	// Building OpenTofu takes minutes: it is there already.
	if err := os.Mkdir(filepath.Join(clone, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(tofu, filepath.Join(clone, "bin", "tofu")); err != nil {
		t.Fatal(err)
	}
	script := "set -euo pipefail\nip link set lo up\n" +
		// Whatever fails, no process stays.
		`trap 'status=$?; "$0"/bin/samya local down --dir "$0"/terraform/local/samya-local >&2; exit $status' EXIT` + "\ncd \"$0\"\n"
	for _, m := range shell.FindAllStringSubmatch(string(guide), -1) {
		script += m[1]
	}
	script += "echo the guide is at its end\n"
	cmd := exec.Command("unshare", "--user", "--map-root-user", "--net", "bash", "-c", script, clone)
	cmd.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE=/dev/null", "TF_INPUT=0", "TF_CLI_ARGS=-no-color", "MAKEFLAGS=-o bin/tofu")
	out, err := cmd.CombinedOutput()
	text := string(out)
	if err != nil || !strings.Contains(text, "the guide is at its end") {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, want := range []string{
		"created acme/vm with limit 1000", "acquired 30 of acme/vm at ", "acquired 20 of acme/vm at ",
		"started am-us-west1-3", "restarted us-west1-1", "started europe-west2-1", "950        50", "joined us-west1-2", "left us-west1-1", "Destroy complete! Resources: 8 destroyed.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing says %q:\n%s", want, text)
		}
	}
	if _, err := os.Stat(filepath.Join(clone, "terraform", "local", "samya-local")); !os.IsNotExist(err) {
		t.Errorf("the directory of the cluster is there: %v", err)
	}
}
