package chart

import (
	"fmt"
	"strings"
	"testing"
)

// TestPorts: NetworkPolicies open the ports that pods listen on, and no others; Services
// and probes lead to ports that are there.
func TestPorts(t *testing.T) {
	for name, values := range all(t) {
		objects := rendered(t, values)
		listens := map[string]bool{"53/UDP": true, "53/TCP": true} // of DNS
		named := make(map[string]bool)
		for _, template := range pods(objects) {
			for _, c := range containers(template) {
				for _, p := range list(c, "ports") {
					listens[fmt.Sprint(at(p, "containerPort"))+"/"+protocol(p)] = true
					named[text(p, "name")] = true
				}
				for _, probe := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
					if port := text(c, probe, "httpGet", "port"); len(list(c, "ports")) > 0 && !named[port] {
						t.Errorf("%s: the %s goes to the port %q", name, probe, port)
					}
				}
			}
		}
		opened := make(map[string]bool)
		for _, o := range objects {
			switch o.kind() {
			case "Service":
				for _, p := range list(o, "spec", "ports") {
					if !named[text(p, "targetPort")] {
						t.Errorf("%s: the Service %s leads to %q", name, o.name(), text(p, "targetPort"))
					}
				}
			case "NetworkPolicy":
				for _, way := range []string{"ingress", "egress"} {
					for _, rule := range list(o, "spec", way) {
						if len(list(rule, "ports")) == 0 {
							t.Errorf("%s: %s opens every port", name, o.name())
						}
						if len(list(rule, map[string]string{"ingress": "from", "egress": "to"}[way])) == 0 {
							t.Errorf("%s: %s opens ports to everybody", name, o.name())
						}
						for _, p := range list(rule, "ports") {
							port := fmt.Sprint(at(p, "port")) + "/" + protocol(p)
							opened[port] = true
							if !listens[port] {
								t.Errorf("%s: %s opens %s, on which nobody listens", name, o.name(), port)
							}
						}
					}
				}
			}
		}
		if len(opened) > 0 {
			for port := range listens {
				if !opened[port] && (port != "7101/TCP" || len(list(values, "networkPolicy", "monitoring")) > 0) {
					t.Errorf("%s: nobody may reach %s", name, port)
				}
			}
		}
	}
}

func protocol(port any) string {
	if p := text(port, "protocol"); p != "" {
		return p
	}
	return "TCP"
}

// TestPods: each pod meets the restricted standard but for the network of the machine, and
// has what a platform asks for.
func TestPods(t *testing.T) {
	for name, values := range all(t) {
		for pod, template := range pods(rendered(t, values)) {
			where := name + " " + pod
			if at(template, "spec", "automountServiceAccountToken") != false {
				t.Errorf("%s has the token of a service account", where)
			}
			// A Service named samya would set variables SAMYA_…, which are settings.
			if at(template, "spec", "enableServiceLinks") != false {
				t.Errorf("%s has variables of Services", where)
			}
			if at(template, "spec", "securityContext", "runAsNonRoot") != true || text(template, "spec", "securityContext", "seccompProfile", "type") != "RuntimeDefault" {
				t.Errorf("%s may run as root, or without seccomp", where)
			}
			mounted := make(map[string]bool)
			for _, c := range containers(template) {
				s := at(c, "securityContext")
				if at(s, "allowPrivilegeEscalation") != false || at(s, "readOnlyRootFilesystem") != true || fmt.Sprint(at(s, "capabilities", "drop")) != "[ALL]" {
					t.Errorf("%s: %v", where, s)
				}
				if at(c, "resources", "limits", "memory") == nil {
					t.Errorf("%s has no limit of memory", where)
				}
				for _, m := range list(c, "volumeMounts") {
					mounted[text(m, "name")] = true
				}
				if strings.HasPrefix(pod, "StatefulSet/") || strings.HasPrefix(pod, "Deployment/") {
					for _, must := range []string{"startupProbe", "livenessProbe", "readinessProbe", "lifecycle"} {
						if at(c, must) == nil {
							t.Errorf("%s has no %s", where, must)
						}
					}
				}
			}
			for _, v := range list(template, "spec", "volumes") {
				if !mounted[text(v, "name")] {
					t.Errorf("%s: nobody mounts the volume %s", where, text(v, "name"))
				}
				delete(mounted, text(v, "name"))
			}
			delete(mounted, "data") // of the claim
			if len(mounted) > 0 {
				t.Errorf("%s mounts %v, which no volume is", where, mounted)
			}
		}
	}
}
