package chart

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// apiserverVariable names the program kube-apiserver; without it the test is skipped, as
// the program takes minutes to build. `make chart-apply` sets it.
const apiserverVariable = "SAMYA_KUBE_APISERVER"

// plurals are the resources of kinds.
var plurals = map[string]string{
	"ServiceAccount": "serviceaccounts", "Service": "services", "StatefulSet": "statefulsets", "Deployment": "deployments",
	"PodDisruptionBudget": "poddisruptionbudgets", "HorizontalPodAutoscaler": "horizontalpodautoscalers", "NetworkPolicy": "networkpolicies",
	"Secret": "secrets", "ConfigMap": "configmaps", "Job": "jobs", "CronJob": "cronjobs", "Pod": "pods", "Certificate": "certificates", "Issuer": "issuers",
	"ServiceMonitor": "servicemonitors", "PrometheusRule": "prometheusrules", "Namespace": "namespaces",
	"CustomResourceDefinition": "customresourcedefinitions", "PersistentVolumeClaim": "persistentvolumeclaims",
}

// server is a kube-apiserver on loopback, over an etcd of its own.
type server struct {
	client dynamic.Interface

	mu       sync.Mutex
	warnings []string
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (s *server) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warnings = append(s.warnings, text)
}

// freePort returns the address of a free port of loopback.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }() // its only purpose was its number
	return l.Addr().String()
}

// startServer starts etcd and kube-apiserver.
func startServer(t *testing.T, program string) *server {
	t.Helper()
	etcd, err := exec.LookPath("etcd")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	clients, peers, secure := freePort(t), freePort(t), freePort(t)
	start(t, "etcd", "", etcd, []string{
		"--data-dir=" + filepath.Join(dir, "etcd"), "--listen-client-urls=http://" + clients, "--advertise-client-urls=http://" + clients,
		"--listen-peer-urls=http://" + peers, "--initial-advertise-peer-urls=http://" + peers, "--initial-cluster=default=http://" + peers,
	}, []string{})
	const token = "a-token-of-this-test"
	key := filepath.Join(dir, "service-account.key")
	tokens := filepath.Join(dir, "tokens.csv")
	if err := errors.Join(
		os.WriteFile(key, accountKey(t), 0o600),
		os.WriteFile(tokens, []byte(token+",admin,admin,system:masters\n"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(secure)
	if err != nil {
		t.Fatal(err)
	}
	start(t, "kube-apiserver", "", program, []string{
		"--etcd-servers=http://" + clients, "--bind-address=127.0.0.1", "--secure-port=" + port, "--cert-dir=" + filepath.Join(dir, "certs"),
		"--service-account-issuer=https://test", "--service-account-key-file=" + key, "--service-account-signing-key-file=" + key,
		"--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=RBAC", "--token-auth-file=" + tokens,
		// No controller makes the default service account and its token.
		"--disable-admission-plugins=ServiceAccount",
	}, []string{})
	s := new(server)
	config := &rest.Config{
		Host: "https://" + secure, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		WarningHandlerWithContext: s, QPS: 1000, Burst: 1000,
	}
	if s.client, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	ask := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	eventually(t, "kube-apiserver", func() error {
		answer, err := ask.Get("https://" + secure + "/readyz")
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }() // it was only asked for
		if answer.StatusCode != http.StatusOK {
			return errors.New(answer.Status)
		}
		return nil
	})
	return s
}

// accountKey returns a key that signs the tokens of service accounts.
func accountKey(t *testing.T) []byte {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(newAuthority(t).key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

// resource returns the resource of an object.
func (s *server) resource(o object) dynamic.ResourceInterface {
	gv, err := schema.ParseGroupVersion(text(o, "apiVersion"))
	if err != nil {
		panic(err) // which the schemas refuse
	}
	r := s.client.Resource(gv.WithResource(plurals[o.kind()]))
	if ns := text(o, "metadata", "namespace"); ns != "" {
		return r.Namespace(ns)
	}
	return r
}

// apply applies an object by server-side apply, as helm does.
func (s *server) apply(t *testing.T, o object, dry bool) (*unstructured.Unstructured, error) {
	t.Helper()
	b, err := yaml.Marshal(map[string]any(o))
	if err != nil {
		t.Fatal(err)
	}
	plain := make(map[string]any)
	if err := yaml.Unmarshal(b, &plain); err != nil {
		t.Fatal(err)
	}
	options := metav1.ApplyOptions{FieldManager: "helm"}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return s.resource(o).Apply(t.Context(), o.name(), &unstructured.Unstructured{Object: numbers(plain).(map[string]any)}, options)
}

// numbers returns v with the numbers that the client copies.
func numbers(v any) any {
	switch v := v.(type) {
	case int:
		return int64(v)
	case map[string]any:
		for key, child := range v {
			v[key] = numbers(child)
		}
	case []any:
		for i, child := range v {
			v[i] = numbers(child)
		}
	}
	return v
}

// makeNamespace makes a namespace whose pods must meet the restricted standard.
func (s *server) makeNamespace(t *testing.T, name, standard string) {
	t.Helper()
	labels := map[string]any{
		"pod-security.kubernetes.io/enforce": standard, "pod-security.kubernetes.io/warn": standard,
		"pod-security.kubernetes.io/enforce-version": "latest", "pod-security.kubernetes.io/warn-version": "latest",
	}
	o := object{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name, "labels": labels}}
	if _, err := s.apply(t, o, false); err != nil {
		t.Fatal(err)
	}
}

// define applies the definitions of the custom resources, and waits until they are served.
func (s *server) define(t *testing.T) {
	t.Helper()
	files, err := customFiles()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		o := make(map[string]any)
		if err := yaml.Unmarshal(b, &o); err != nil {
			t.Fatal(err)
		}
		if _, err := s.apply(t, o, false); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		eventually(t, path, func() error {
			made, err := s.resource(o).Get(t.Context(), object(o).name(), metav1.GetOptions{})
			if err != nil {
				return err
			}
			for _, c := range list(made.Object, "status", "conditions") {
				if text(c, "type") == "Established" && text(c, "status") == "True" {
					return nil
				}
			}
			return errors.New("not established")
		})
	}
}

// TestApply applies what comes out of each file of values to a real kube-apiserver by
// server-side apply, twice: the second time changes nothing. Each pod of a template is
// admitted to a namespace of the restricted standard, and each claim is valid.
func TestApply(t *testing.T) {
	t.Parallel()
	program := os.Getenv(apiserverVariable)
	if program == "" {
		t.Skip("no " + apiserverVariable + ": make chart-apply")
	}
	s := startServer(t, program)
	s.define(t)
	table := []string{"VALUES        STANDARD    OBJECTS  PODS  CLAIMS  CHANGED AGAIN"}
	names := all(t)
	for _, name := range sortedKeys(names) {
		values := names[name]
		standard := "restricted"
		if at(values, "site", "hostNetwork") == true {
			standard = "privileged"
		}
		ns := namespace + "-" + name
		s.makeNamespace(t, ns, standard)
		objects := rendered(t, values)
		versions := make(map[string]string)
		pods, claims, changed := 0, 0, 0
		for _, again := range []bool{false, true} {
			for _, o := range objects {
				asMap(o["metadata"])["namespace"] = ns
				got, err := s.apply(t, o, false)
				if err != nil {
					t.Errorf("%s: %s %s: %v", name, o.kind(), o.name(), err)
					continue
				}
				id := o.kind() + "/" + o.name()
				if again && versions[id] != got.GetResourceVersion() {
					changed++
					t.Errorf("%s: %s is changed when applied again", name, id)
				}
				versions[id] = got.GetResourceVersion()
			}
		}
		for _, o := range objects {
			if template := asMap(at(o, "spec", "template")); o.kind() != "Pod" && template["spec"] != nil {
				pod := object{"apiVersion": "v1", "kind": "Pod", "metadata": mergedMap(template["metadata"], "name", o.name()+"-x", "namespace", ns), "spec": template["spec"]}
				// The controller adds the volumes of claims.
				for _, claim := range list(o, "spec", "volumeClaimTemplates") {
					claims++
					volume := map[string]any{"name": text(claim, "metadata", "name"), "persistentVolumeClaim": map[string]any{"claimName": "x"}}
					spec := mergedMap(template["spec"], "volumes", append(slices.Clone(list(template, "spec", "volumes")), volume))
					pod["spec"] = spec
					c := mergedMap(claim, "metadata", mergedMap(at(claim, "metadata"), "name", o.name(), "namespace", ns))
					if _, err := s.apply(t, c, true); err != nil {
						t.Errorf("%s: claim of %s: %v", name, o.name(), err)
					}
				}
				pods++
				if _, err := s.apply(t, pod, true); err != nil {
					t.Errorf("%s: pod of %s: %v", name, o.name(), err)
				}
			}
		}
		table = append(table, fmt.Sprintf("%-12s  %-10s  %7d  %4d  %6d  %13d", name, standard, len(objects), pods, claims, changed))
	}
	s.upgrade(t, names["trial"])
	s.keepsKey(t, names["defaults"])
	for _, w := range s.warnings {
		t.Errorf("the server warns: %s", w)
	}
	// The server sees what the chart must not be.
	pod := object{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "root", "namespace": namespace + "-minimal"}, "spec": map[string]any{
		"containers": []any{map[string]any{"name": "x", "image": "x"}},
	}}
	if _, err := s.apply(t, pod, true); err == nil || !strings.Contains(err.Error(), "restricted") {
		t.Errorf("a pod that may run as root is admitted: %v", err)
	}
	t.Log("\n" + strings.Join(table, "\n"))
}

// upgrade changes a release in every way that an operator may: the server takes the changes,
// as no field is among them that may not change.
func (s *server) upgrade(t *testing.T, values map[string]any) {
	t.Helper()
	changed := maps.Clone(values)
	changed["image"] = map[string]any{"tag": "v1.3.0"}
	changed["commonLabels"] = map[string]any{"team": "quota"}
	changed["sites"] = []any{
		map[string]any{"name": "us", "settings": map[string]any{"log-level": "debug"}},
		map[string]any{"name": "as"},
		map[string]any{"name": "eu", "state": "draining"},
		map[string]any{"name": "au", "region": "au-south"},
		map[string]any{"name": "sa-2"},
	}
	changed["appManager"] = map[string]any{"autoscaling": map[string]any{"enabled": true}}
	for _, o := range rendered(t, changed) {
		asMap(o["metadata"])["namespace"] = namespace + "-trial"
		if _, err := s.apply(t, o, false); err != nil {
			t.Errorf("upgrade: %s %s: %v", o.kind(), o.name(), err)
		}
	}
}

// GetClientFor implements engine.ClientProvider.
func (s *server) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	return s.client.Resource(gv.WithResource(plurals[kind])), true, err
}

// keepsKey checks that an upgrade finds the gossip key that the installation made.
func (s *server) keepsKey(t *testing.T, values map[string]any) {
	t.Helper()
	s.makeNamespace(t, namespace, "restricted")
	key := func() object {
		objects, err := render(values, s)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(objects, func(o object) bool { return o.name() == release+"-gossip" })
		return objects[i]
	}
	first := key()
	if other := key(); text(first, "data", "gossip.key") == text(other, "data", "gossip.key") {
		t.Error("two installations have the same gossip key")
	}
	if _, err := s.apply(t, first, false); err != nil {
		t.Fatal(err)
	}
	if again := key(); text(first, "data", "gossip.key") != text(again, "data", "gossip.key") {
		t.Error("an upgrade makes another gossip key")
	}
}

// mergedMap returns a copy of a map with further keys and values.
func mergedMap(m any, more ...any) map[string]any {
	merged := make(map[string]any)
	maps.Copy(merged, asMap(m))
	for i := 0; i < len(more); i += 2 {
		merged[more[i].(string)] = more[i+1]
	}
	return merged
}
