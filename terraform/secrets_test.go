package terraform_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samya-db/samya/terraform/tofutest"
)

// Stand-ins for the programs that fetch secrets. They answer as the documents of the
// clouds say, for the secret samya-ca alone.
const (
	curl = `#!/bin/sh
cat >"$0.in"
for last; do :; done
case "$last" in
http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token)
  case "$*" in *'Metadata-Flavor: Google'*) printf '{"access_token":"ya29.token","expires_in":3599,"token_type":"Bearer"}' ;; *) exit 22 ;; esac ;;
https://secretmanager.googleapis.com/v1/projects/my-project/secrets/samya-ca/versions/latest:access)
  grep -q '^header = "Authorization: Bearer ya29.token"$' "$0.in" || exit 22
  printf '{\n  "name": "projects/1/secrets/samya-ca/versions/2",\n  "payload": {\n    "data": "Rmlyc3QKU2Vjb25kCg==",\n    "dataCrc32c": "1"\n  }\n}\n' ;;
*) exit 22 ;;
esac
`
	aws = `#!/bin/sh
[ "$1 $2 $3 $4 $5" = "secretsmanager get-secret-value --region eu-west-2 --secret-id" ] || exit 252
[ "$7 $8 $9" = "--query SecretString --output" ] || exit 252
[ "$6" = samya-ca ] || exit 254
printf 'First\nSecond\n'
`
	nobody = "#!/bin/sh\nexit 0\n"
)

// TestFetchSecret runs the machines' fetch of secrets against stand-ins of the clouds. A
// missing secret is an error and changes nothing.
func TestFetchSecret(t *testing.T) {
	for cloud, with := range map[string]map[string]string{
		"google": {"project": "my-project"},
		"aws":    {"region": "eu-west-2"},
	} {
		t.Run(cloud, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(tofutest.Root(t), "terraform", cloud, "region", "fetch.sh.tftpl"))
			if err != nil {
				t.Fatal(err)
			}
			fetch := string(text)
			for name, value := range with {
				fetch = strings.ReplaceAll(fetch, "${"+name+"}", value)
			}
			dir := t.TempDir()
			bin, etc, config := filepath.Join(dir, "bin"), filepath.Join(dir, "etc"), filepath.Join(dir, "etc", "samya")
			c := tofutest.Copy(t, "modules/region", "")
			c.Must("init")
			r := render(t, c, map[string]any{
				"secrets": map[string]string{"fetch": fetch},
				"paths":   map[string]string{"etc": etc, "config": config, "library": bin},
			})
			put := func(path, content string) {
				t.Helper()
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			put(filepath.Join(bin, "curl"), curl)
			put(filepath.Join(bin, "aws"), aws)
			// The group exists only on the machines.
			put(filepath.Join(bin, "chgrp"), nobody)
			script := filepath.Join(bin, "secrets")
			put(script, r.AppManagerFiles[script].Content)
			run := func() (string, error) {
				cmd := exec.Command(script)
				cmd.Env = []string{"PATH=" + bin + ":/usr/local/bin:/usr/bin:/bin"}
				out, err := cmd.CombinedOutput()
				return string(out), err
			}

			put(filepath.Join(etc, "samya-secrets"), "samya-ca ca.pem\n")
			out, err := run()
			if err != nil || !strings.Contains(out, "samya-ca is now in "+config+"/ca.pem") {
				t.Fatalf("%v\n%s", err, out)
			}
			if b, err := os.ReadFile(filepath.Join(config, "ca.pem")); err != nil || strings.TrimSpace(string(b)) != "First\nSecond" {
				t.Errorf("it has %q, %v", b, err)
			}
			if info, err := os.Stat(filepath.Join(config, "ca.pem")); err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("its mode is %v, %v", info.Mode(), err)
			}
			if out, err := run(); err != nil || out != "" {
				t.Errorf("again: %v\n%s", err, out)
			}

			put(filepath.Join(etc, "samya-secrets"), "samya-crl ca.pem\nsamya-ca other.pem\n")
			out, err = run()
			if err == nil || !strings.Contains(out, "the secret samya-crl cannot be fetched") {
				t.Errorf("a secret that is not there: %v\n%s", err, out)
			}
			for _, name := range []string{"ca.pem", "other.pem"} {
				if b, err := os.ReadFile(filepath.Join(config, name)); err != nil || strings.TrimSpace(string(b)) != "First\nSecond" {
					t.Errorf("%s has %q, %v", name, b, err)
				}
			}
		})
	}
}
