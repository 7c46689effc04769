package terraform_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/samya-db/samya/terraform/tofutest"
)

// mutation is a mistake in a file of a root, and the message that names it.
type mutation struct{ name, file, old, with, want string }

// TestInventedArguments makes mistakes in the roots: validation finds each mistake. A
// check that lets a mistake pass would let ours pass as well.
func TestInventedArguments(t *testing.T) {
	mirror := tofutest.Mirror(t)
	for cloud, mutations := range map[string][]mutation{
		"google": {
			{"invented argument", "region/main.tf", "  private_ip_google_access = true", "  private_google_access = true", `An argument named "private_google_access" is not expected here`},
			{"invented argument of a nested block", "region/sites.tf", "    network_ip =", "    private_ip =", `An argument named "private_ip" is not expected here`},
			{"invented argument two blocks down", "region/sites.tf", "      image = var.image", "      source_image = var.image", `An argument named "source_image" is not expected here`},
			{"missing argument", "main.tf", "  name                    = var.cluster\n  description             = \"The", "  description             = \"The", `The argument "name" is required`},
			{"missing argument of a nested block", "region/main.tf", "    protocol = each.value.protocol\n", "", `The argument "protocol" is required`},
			{"invented block", "region/app_managers.tf", "  auto_healing_policies {", "  healing_policy {", `Blocks of type "healing_policy" are not expected here`},
			{"missing block", "region/app_managers.tf", "  version {\n    instance_template = google_compute_instance_template.app_manager.self_link\n  }\n", "", "At least 1 \"version\" blocks are required"},
			{"one block too many", "region/app_managers.tf", "  tcp_health_check {", "  tcp_health_check {\n    port = 1\n  }\n  tcp_health_check {", "No more than 1 \"tcp_health_check\" blocks are allowed"},
			{"block as an argument", "secrets.tf", "  replication {\n    auto {}\n  }", "  replication = { auto = {} }", `"replication" is not expected here`},
			{"invented kind", "region/main.tf", `resource "google_compute_router_nat" "region"`, `resource "google_compute_nat" "region"`, `does not support resource type "google_compute_nat"`},
			{"invented attribute", "region/outputs.tf", "google_compute_address.app_manager.address", "google_compute_address.app_manager.ip", `no argument, nested block, or exported attribute named "ip"`},
			{"invented attribute of a list of blocks", "region/outputs.tf", "google_compute_address.app_manager.address", `google_compute_instance.site["a"].network_interface[0].ip`, `no argument, nested block, or exported attribute named "ip"`},
			{"what is only told", "main.tf", "  routing_mode            = \"GLOBAL\"", "  self_link               = \"x\"", `"self_link" is decided by the provider`},
			{"invented argument of etcd", "region/etcd.tf", "    device_name = \"samya-data\"", "    device = \"samya-data\"", `An argument named "device" is not expected here`},
			{"missing argument of etcd", "region/etcd.tf", "  machine_type              = var.etcd.machine.type\n", "", `The argument "machine_type" is required`},
			{"wrong type", "region/app_managers.tf", "  healthy_threshold   = 1", "  healthy_threshold   = \"one\"", "a number is required"},
		},
		"aws": {
			{"invented argument", "region/main.tf", "  enable_dns_hostnames = true", "  dns_hostnames = true", `An argument named "dns_hostnames" is not expected here`},
			{"invented argument of a nested block", "region/sites.tf", `    http_tokens                 = "required"`, `    tokens = "required"`, `An argument named "tokens" is not expected here`},
			{"missing argument", "region/sites.tf", "  device_name = \"/dev/sdf\"\n", "", `The argument "device_name" is required`},
			{"missing argument of a nested block", "region/app_managers.tf", `    type             = "forward"`, "", `The argument "type" is required`},
			{"invented block", "region/app_managers.tf", "  launch_template {\n    id ", "  template {\n    id ", `Blocks of type "template" are not expected here`},
			{"one block too many", "region/app_managers.tf", "  health_check {", "  health_check {\n    port = 1\n  }\n  health_check {", "No more than 1 \"health_check\" blocks are allowed"},
			{"invented kind", "region/monitoring.tf", `resource "aws_cloudwatch_dashboard" "machines"`, `resource "aws_dashboard" "machines"`, `does not support resource type "aws_dashboard"`},
			{"invented attribute", "region/outputs.tf", "aws_lb.app_manager.dns_name", "aws_lb.app_manager.address", `no argument, nested block, or exported attribute named "address"`},
			{"argument of another kind", "peering.tf", "  auto_accept               = true", "  auto_accept               = true\n  peer_region = \"x\"", `"peer_region" is decided by the provider`},
			{"argument of the provider", "main.tf", "  default_tags {", "  account = \"1\"\n  default_tags {", `An argument named "account" is not expected here`},
			{"invented argument of etcd", "region/etcd.tf", "  availability_zone = each.value.zone", "  zone = each.value.zone", `An argument named "zone" is not expected here`},
			{"missing argument of etcd", "region/etcd.tf", "  subnet_id       = aws_subnet.private[each.value.zone].id\n", "", `The argument "subnet_id" is required`},
			{"what is only told", "region/main.tf", "  enable_dns_hostnames = true", "  arn = \"x\"", `"arn" is decided by the provider`},
		},
	} {
		t.Run(cloud, func(t *testing.T) {
			c := tofutest.Copy(t, cloud, mirror)
			c.Must("init")
			for len(mutations) > 0 {
				// A mistake may keep tofu from looking at the next. The test makes the
				// missed mistakes again, and the first alone if tofu missed all.
				left := missed(t, c, together(mutations), mutations)
				if len(left) == len(mutations) {
					alone := mutations[:1]
					if left = append(missed(t, c, alone, alone), mutations[1:]...); len(left) == len(mutations) {
						t.Errorf("%s: not found: %q", alone[0].name, alone[0].want)
						left = left[1:]
					}
				}
				mutations = left
			}
		})
	}
}

// together returns mutations with unlike messages and at unlike places.
func together(all []mutation) []mutation {
	var some []mutation
	for _, m := range all {
		if !slices.ContainsFunc(some, func(o mutation) bool { return o.want == m.want || o.file == m.file && o.old == m.old }) {
			some = append(some, m)
		}
	}
	return some
}

// missed makes some mutations, has tofu validate the root, and restores the root. It
// returns all mutations that tofu did not tell of.
func missed(t *testing.T, c *tofutest.Config, some, all []mutation) []mutation {
	t.Helper()
	were := make(map[string][]byte)
	for _, m := range some {
		path := filepath.Join(c.Dir, m.file)
		is, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := were[path]; !ok {
			were[path] = is
		}
		if !strings.Contains(string(is), m.old) {
			t.Fatalf("%s has no %q: the mutation is of another version", m.file, m.old)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(is), m.old, m.with, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := c.Run("validate")
	if err == nil {
		t.Errorf("%d mistakes, and tofu finds none:\n%s", len(some), out)
	}
	for path, was := range were {
		if err := os.WriteFile(path, was, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out = spaced(out)
	return slices.DeleteFunc(slices.Clone(all), func(m mutation) bool {
		return slices.Contains(some, m) && strings.Contains(out, spaced(m.want))
	})
}

// spaced is a text with single spaces, wherever its lines broke.
func spaced(s string) string { return strings.Join(strings.Fields(s), " ") }
