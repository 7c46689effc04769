package terraform_test

import (
	"strings"
	"testing"

	"github.com/samya-db/samya/terraform/tofutest"
)

// TestSitesComeAndGo: a site that is added, and one that leaves, change nothing of other
// machines. The plan makes or destroys what is of the site, and no more.
func TestSitesComeAndGo(t *testing.T) {
	mirror := tofutest.Mirror(t)
	for cloud, names := range map[string][2]string{"google": {"us-west1", "europe-west2"}, "aws": {"us-west-2", "eu-west-2"}} {
		t.Run(cloud, func(t *testing.T) {
			c := tofutest.Copy(t, cloud, mirror)
			c.Must("init")
			with := func(regions map[string]any) {
				t.Helper()
				c.Vars = variables(cloud, regions)
			}
			region := func(network, sites int, gone ...int) map[string]any {
				return map[string]any{"network": network, "sites": sites, "gone": append([]int{}, gone...)}
			}
			with(map[string]any{names[0]: region(0, 1), names[1]: region(1, 1)})
			c.Must("apply", "-auto-approve")

			added := names[0] + "-2"
			with(map[string]any{names[0]: region(0, 2), names[1]: region(1, 1)})
			only(t, c, "create", added)
			c.Must("apply", "-auto-approve")
			if c.Planned() {
				t.Error("a plan after a site was added is not empty")
			}

			with(map[string]any{names[0]: region(0, 2, 1), names[1]: region(1, 1)})
			replaced := c.Changes()
			of(t, replaced, "delete", names[0]+"-1")
			of(t, replaced, "create", names[0]+"-3")
			for address := range replaced {
				t.Errorf("a site is replaced, and the plan changes %s", address)
			}

			with(map[string]any{names[0]: region(0, 1), names[1]: region(1, 1)})
			only(t, c, "delete", added)
			c.Must("apply", "-auto-approve")
			if c.Planned() {
				t.Error("a plan after a site has left is not empty")
			}
		})
	}
}

// variables are those of a root whose disks may be destroyed.
func variables(cloud string, regions map[string]any) map[string]any {
	vars := map[string]any{
		"release": map[string]string{"url": "https://example.com/samya", "sha256": strings.Repeat("0", 64)},
		"regions": regions, "project": "my-project", "protect_data": false,
	}
	if cloud == "aws" {
		delete(vars, "project")
	}
	return vars
}

// TestNodesCome: a second and a third node of a site leave its machine, disk and address as
// they are; app managers learn the addresses. The way back is refused while data is protected.
func TestNodesCome(t *testing.T) {
	mirror := tofutest.Mirror(t)
	for cloud, names := range map[string][2]string{"google": {"us-west1", "europe-west2"}, "aws": {"us-west-2", "eu-west-2"}} {
		t.Run(cloud, func(t *testing.T) {
			c := tofutest.Copy(t, cloud, mirror)
			c.Must("init")
			with := func(nodes int, protect bool) {
				t.Helper()
				c.Vars = variables(cloud, map[string]any{
					names[0]: map[string]any{"network": 0, "nodes": nodes}, names[1]: map[string]any{"network": 1},
				})
				c.Vars["protect_data"] = protect
				c.Vars["etcd"] = map[string]string{"url": "https://example.com/etcd", "sha256": strings.Repeat("1", 64)}
			}
			with(1, true)
			c.Must("apply", "-auto-approve")
			site := names[0] + "-1"

			with(2, true)
			changes := c.Changes()
			made := 0
			for address, did := range changes {
				switch {
				case did == "create":
					if strings.Contains(address, "_instance.") {
						made++
					}
				case strings.Contains(address, "app_manager"), strings.Contains(address, "_dashboard."), did == "update" && strings.Contains(address, "_iam_role_policy.read["+`"`+site+`"`):
					// App managers learn the addresses of all nodes, and are renewed at full size. The
					// role of the site may read secrets for etcd.
				default:
					t.Errorf("a second node, and the plan does %s to %s", did, address)
				}
			}
			if made != 4 {
				t.Errorf("%d machines are made, want a node and three members of etcd: %v", made, changes)
			}
			c.Must("apply", "-auto-approve")
			if c.Planned() {
				t.Error("a plan after a second node came is not empty")
			}

			with(3, true)
			for address, did := range c.Changes() {
				// On Google a rule names the machines that may come to etcd.
				rule := did == "update" && strings.Contains(address, `_firewall.rule["etcd-clients"]`)
				if did != "create" && !rule && !strings.Contains(address, "app_manager") && !strings.Contains(address, "_dashboard.") {
					t.Errorf("a third node, and the plan does %s to %s", did, address)
				}
			}

			with(1, true)
			if out, err := c.Run("plan"); err == nil {
				t.Errorf("a site goes back from etcd to its disk:\n%s", out)
			}
		})
	}
}

// only checks that a plan does something to resources of a site alone, its machine and its
// disk among them.
func only(t *testing.T, c *tofutest.Config, did, site string) {
	t.Helper()
	changes := c.Changes()
	of(t, changes, did, site)
	for address, did := range changes {
		t.Errorf("the plan for %s does %s to %s", site, did, address)
	}
}

// of takes the resources of a site out of a plan, and checks what becomes of them. The
// drawing of the machines of a region may change.
func of(t *testing.T, changes map[string]string, did, site string) {
	t.Helper()
	machine := false
	for address, does := range changes {
		key := strings.TrimSuffix(address[strings.LastIndex(address, `["`)+2:], `"]`)
		switch {
		case key == site, strings.HasSuffix(key, "/"+site), strings.HasSuffix(key, "-tls-"+site):
			if does != did {
				t.Errorf("the plan does %s to %s", does, address)
			}
			machine = machine || strings.Contains(address, "_instance.site[")
			delete(changes, address)
		case strings.Contains(address, "_dashboard.") && does == "update":
			delete(changes, address)
		}
	}
	if !machine {
		t.Errorf("the plan does not %s the machine of %s", did, site)
	}
}
