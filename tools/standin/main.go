// Command standin is a provider of OpenTofu that stands in for another provider. It
// reads that provider's schema from a file beside itself, so that OpenTofu judges a
// configuration argument by argument. It refuses to reach anything outside of its
// process.
//
// A plan has the configured values. All other values become known when the plan is
// applied, and are made up then.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
)

// name matches the name of a provider's program, as OpenTofu installs it.
var name = regexp.MustCompile(`\Aterraform-provider-([a-z]+)_v`)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "standin:", err)
		os.Exit(1)
	}
}

func run() error {
	bin, err := os.Executable()
	if err != nil {
		return err
	}
	m := name.FindStringSubmatch(filepath.Base(bin))
	if m == nil {
		return fmt.Errorf("%s is not a provider's name", bin)
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(bin), "schema.json"))
	if err != nil {
		return err
	}
	var schema provider
	if err := json.Unmarshal(text, &schema); err != nil {
		return fmt.Errorf("schema.json: %w", err)
	}
	s, err := newServer(&schema)
	if err != nil {
		return err
	}
	return tf6server.Serve("registry.opentofu.org/hashicorp/"+m[1], func() tfprotov6.ProviderServer { return s })
}
