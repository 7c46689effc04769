// Package terraform_test checks the configurations of this directory with OpenTofu, the
// providers' schemas, systemd and samya itself.
package terraform_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/samya-db/samya/terraform/tofutest"
)

// clouds are the roots that stand for a cloud.
var clouds = []string{"google", "aws"}

// TestRoots has OpenTofu validate every root, plan and apply each of its examples
// on the stand-in of its provider, and plan again, also to destroy.
func TestRoots(t *testing.T) {
	mirror := tofutest.Mirror(t)
	for _, cloud := range clouds {
		t.Run(cloud, func(t *testing.T) {
			c := tofutest.Copy(t, cloud, mirror)
			c.Must("init")
			c.Must("validate")
			examples, err := filepath.Glob(filepath.Join(c.Dir, "examples", "*.tfvars"))
			if err != nil || len(examples) == 0 {
				t.Fatalf("examples %v, %v", examples, err)
			}
			for _, example := range examples {
				t.Run(filepath.Base(example), func(t *testing.T) {
					with := "-var-file=" + example
					if err := os.Remove(filepath.Join(c.Dir, "terraform.tfstate")); err != nil && !os.IsNotExist(err) {
						t.Fatal(err)
					}
					c.Must("apply", "-auto-approve", with)
					if cloud == "aws" {
						secretsGoAtOnce(t, c.Dir)
					}
					if out, err := c.Run("plan", "-detailed-exitcode", with); err != nil {
						t.Errorf("a plan after an apply is not empty: %v\n%s", err, out)
					}
					if out, err := c.Run("plan", "-destroy", "-refresh=false", with); err == nil {
						t.Errorf("disks with books can be destroyed without being asked twice:\n%s", out)
					}
					c.Must("plan", "-destroy", "-refresh=false", with, "-var=protect_data=false")
				})
			}
		})
	}
}

// secretsGoAtOnce checks that the names of all secrets in a state are free as soon as
// they are destroyed: a cluster can be applied again.
func secretsGoAtOnce(t *testing.T, dir string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "terraform.tfstate"))
	if err != nil {
		t.Fatal(err)
	}
	var state struct {
		Resources []struct {
			Type      string
			Instances []struct {
				Attributes struct {
					RecoveryWindow *int `json:"recovery_window_in_days"`
				}
			}
		}
	}
	if err := json.Unmarshal(b, &state); err != nil {
		t.Fatal(err)
	}
	secrets := 0
	for _, r := range state.Resources {
		if r.Type != "aws_secretsmanager_secret" {
			continue
		}
		for _, i := range r.Instances {
			secrets++
			if w := i.Attributes.RecoveryWindow; w == nil || *w != 0 {
				t.Fatalf("the name of a destroyed secret stays taken: recovery window %v", w)
			}
		}
	}
	if secrets == 0 {
		t.Error("no secret in the state")
	}
}

// TestModules validates the modules, and runs their tests if they have some.
func TestModules(t *testing.T) {
	mirror := tofutest.Mirror(t)
	for _, dir := range []string{"local", "modules/region", "google/region", "aws/region", "google", "aws"} {
		t.Run(dir, func(t *testing.T) {
			c := tofutest.Copy(t, dir, mirror)
			c.Must("init")
			c.Must("validate")
			if _, err := os.Stat(filepath.Join(c.Dir, "tests")); err == nil {
				t.Log(c.Must("test"))
			}
		})
	}
}
