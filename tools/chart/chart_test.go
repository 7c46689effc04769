package chart

import (
	"encoding/json"
	"flag"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/yannh/kubeconform/pkg/resource"
	"github.com/yannh/kubeconform/pkg/validator"
	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
)

var update = flag.Bool("update", false, "rewrite what is made from the chart and from the flags of samya")

// all returns every file of values.
func all(t *testing.T) map[string]map[string]any {
	t.Helper()
	values, err := valuesFiles()
	if err != nil {
		t.Fatal(err)
	}
	if len(values) < 6 {
		t.Fatalf("%d files of values: the test does not see them", len(values))
	}
	return values
}

// rendered returns the objects that come out of values.
func rendered(t *testing.T, values map[string]any) []object {
	t.Helper()
	objects, err := render(values, nil)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// TestLint: helm's linter has nothing to say but that charts may have icons.
func TestLint(t *testing.T) {
	kube, err := common.ParseKubeVersion(kubeVersion)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range all(t) {
		result := lint.RunAll(Dir, values, namespace, lint.WithKubeVersion(kube))
		for _, m := range result.Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %v", name, m)
			}
		}
	}
}

// TestSchemasOfKinds: every object has the form that Kubernetes, cert-manager and the
// Prometheus operator publish, without unknown fields.
func TestSchemasOfKinds(t *testing.T) {
	dir := t.TempDir()
	if err := writeSchemas(dir); err != nil {
		t.Fatal(err)
	}
	v, err := validator.New([]string{dir + "/{{ .ResourceKind }}{{ .KindSuffix }}.json"}, validator.Opts{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	judge := func(o object) validator.Result {
		b, err := yaml.Marshal(map[string]any(o))
		if err != nil {
			t.Fatal(err)
		}
		return v.ValidateResource(resource.Resource{Bytes: b})
	}
	counts := make(map[string]int)
	for name, values := range all(t) {
		for _, o := range rendered(t, values) {
			counts[o.kind()]++
			if r := judge(o); r.Status != validator.Valid {
				t.Errorf("%s: %s %s: %v", name, o.kind(), o.name(), r.Err)
			}
			if o.kind() == "ConfigMap" || o.kind() == "Secret" {
				continue // which have no spec
			}
			// The check sees a field that is spelt wrongly.
			o["spec"] = maps.Clone(asMap(o["spec"]))
			asMap(o["spec"])["replica"] = 1
			if o.kind() == "ServiceAccount" {
				continue
			}
			if r := judge(o); r.Status != validator.Invalid {
				t.Errorf("%s: %s %s with an unknown field is %v", name, o.kind(), o.name(), r.Status)
			}
		}
	}
	for _, kind := range []string{
		"ServiceAccount", "Service", "StatefulSet", "Deployment", "PodDisruptionBudget", "HorizontalPodAutoscaler", "NetworkPolicy",
		"Secret", "ConfigMap", "Job", "CronJob", "Pod", "Certificate", "Issuer", "ServiceMonitor", "PrometheusRule",
	} {
		if counts[kind] == 0 {
			t.Errorf("no file of values has a %s", kind)
		}
	}
	t.Logf("objects judged: %v", counts)
}

func asMap(v any) map[string]any {
	m, _ := v.(map[string]any)
	if m == nil {
		m = make(map[string]any)
	}
	return m
}

// TestWrongValues: values that cannot be meant are refused, and the message names them.
func TestWrongValues(t *testing.T) {
	for _, tc := range []struct{ values, want string }{
		{"sites: [{nam: us}]", "'nam'"},
		{"sitess: []", "'sitess'"},
		{"sites: [{name: US}]", "/sites/0/name"},
		{"sites: [{name: a-name-of-more-than-27-characters}]", "/sites/0/name"},
		{"sites: [{name: us, state: gone}]", "/sites/0/state"},
		{"site: {settings: {request-retentoin: 5m}}", "request-retentoin"},
		{"site: {settings: {name: eu}}", "'name'"},
		{"site: {settings: {tls-cert: x}}", "tls-cert"},
		{"appManager: {settings: {data: /tmp}}", "'data'"},
		{"appManager: {replicas: -1}", "/appManager/replicas"},
		{"site: {storage: {size: 10 GB}}", "/site/storage/size"},
		{"site: {resources: {request: {cpu: 1}}}", "'request'"},
		{"site: {env: [{name: SAMYA_NAME, value: eu}]}", "/site/env/0/name"},
		{"tls: {mode: on}", "/tls/mode"},
		{"access: {callers: [{name: a, role: root}]}", "/access/callers/0/role"},
		{"access: {callers: [{name: admin, role: viewer}]}", "/access/callers/0/name"},
		{"cluster: {seeds: [10.0.0.1]}", "/cluster/seeds/0"},
		{"cluster: {founders: []}", "/cluster/founders"},
		{"networkPolicy: {clients: [{ipBlok: {cidr: 10.0.0.0/8}}]}", "'ipBlok'"},
		{"image: {tag: ''}", "image.tag: this chart is of a checkout"},
		{"appManager: {enabled: false}\nsites: [{name: us, state: draining}]", "admin.address: a release without app managers"},
		{"sites: [{name: us}, {name: us}]", "sites: us is there twice"},
		{"sites: [{name: us, state: draining, heir: us}]", "sites: us cannot be its own heir"},
		{"cluster: {founders: [eu]}\nadmin: {job: true}\nappManager: {enabled: false}", "admin.address"},
		{"backup: {schedule: 17 3 * * *}", "backup.claim: backups need a claim"},
		{"backup: {schedule: hourly, claim: x}", "/backup/schedule"},
		{"appManager: {autoscaling: {minReplicas: 5, maxReplicas: 2}}", "appManager.autoscaling: minReplicas is above maxReplicas"},
		{"site: {drainSeconds: 120, settings: {request-retention: 5m}}\nsites: [{name: us, state: draining}]", ""},
	} {
		values := map[string]any{"image": map[string]any{"tag": "v1.2.3"}}
		given := make(map[string]any)
		if err := yaml.Unmarshal([]byte(tc.values), &given); err != nil {
			t.Fatal(err)
		}
		maps.Copy(values, given)
		_, err := render(values, nil)
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", tc.values, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: %v, want an error with %s", tc.values, err, tc.want)
		}
	}
}

// flagsOf returns the flags of commands by the command's name, as cmd/samya lists them.
func flagsOf(t *testing.T) map[string][]string {
	t.Helper()
	b, err := os.ReadFile(Root + "/cmd/samya/testdata/flags.txt")
	if err != nil {
		t.Fatal(err)
	}
	flags := make(map[string][]string)
	for line := range strings.Lines(string(b)) {
		fields := strings.Split(line, "\t") // flag, kind, command, meaning
		flags[fields[2]] = append(flags[fields[2]], fields[0])
	}
	return flags
}

// own are the flags of processes that the chart sets, or that do not fit in a pod.
var own = []string{
	"name", "region", "cluster", "preset", "data", "grpc", "http", "gossip", "join", "members", "config", "insecure",
	"tls-cert", "tls-key", "tls-ca", "tls-crl", "access-file", "gossip-key-file", "latency", "exit-with-stdin",
	// Sites of several nodes have their log in etcd; the chart runs sites with disks.
	"log", "node", "await-log", "take-over", "etcd-endpoints", "etcd-ca", "etcd-cert", "etcd-key", "etcd-user", "etcd-password-file",
	"etcd-timeout", "etcd-keep-history",
}

// TestSettings: the schema of the values knows the flags of this build, and no others.
func TestSettings(t *testing.T) {
	path := Dir + "/values.schema.json"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for definition, command := range map[string]string{"siteSettings": "samya site", "appManagerSettings": "samya appmgr"} {
		var settings []string
		for _, name := range flagsOf(t)[command] {
			if !slices.Contains(own, name) {
				settings = append(settings, name)
			}
		}
		slices.Sort(settings)
		if len(settings) < 10 {
			t.Fatalf("%s has the flags %v: the test does not see them", command, settings)
		}
		line, err := json.Marshal(settings)
		if err != nil {
			t.Fatal(err)
		}
		start := strings.Index(text, `"`+definition+`": {`)
		from := start + strings.Index(text[start:], `"enum": [`) + len(`"enum": `)
		end := from + strings.Index(text[from:], "]") + 1
		if text[from:end] != string(line) {
			if !*update {
				t.Errorf("%s of the schema has other settings than %s: go test -run TestSettings -update", definition, command)
			}
			text = text[:from] + string(line) + text[end:]
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFlags: every command line of a pod is one that this build takes.
func TestFlags(t *testing.T) {
	flags := flagsOf(t)
	checked := 0
	check := func(where string, line []string) {
		var words []string
		for len(line) > 0 && !strings.HasPrefix(line[0], "--") {
			words, line = append(words, line[0]), line[1:]
		}
		command := "samya"
		for _, word := range words {
			if flags[command+" "+word] != nil || word == "entity" || word == "member" {
				command += " " + word
			}
		}
		for _, arg := range line {
			name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
			if !strings.HasPrefix(arg, "--") {
				continue // an argument
			}
			checked++
			known := slices.Contains(flags[command], name)
			for parent := command; !known && strings.Contains(parent, " "); {
				parent = parent[:strings.LastIndex(parent, " ")]
				known = slices.Contains(flags[parent], name)
			}
			if !known {
				t.Errorf("%s: %s has no flag --%s", where, command, name)
			}
		}
	}
	for name, values := range all(t) {
		for pod, template := range pods(rendered(t, values)) {
			for _, c := range containers(template) {
				check(name+" "+pod, texts(c, "args"))
				if hook := texts(c, "lifecycle", "preStop", "exec", "command"); hook != nil {
					check(name+" "+pod+" preStop", hook[1:])
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("%d flags; the test does not see them", checked)
	}
}

// TestRestartsKeepTokens: only a site that is marked has a preStop that drains it, and no
// site of several restarts by itself.
func TestRestartsKeepTokens(t *testing.T) {
	drains := 0
	for name, values := range all(t) {
		marked := make(map[string]bool)
		for _, s := range list(values, "sites") {
			marked[text(s, "name")] = text(s, "state") == "draining"
		}
		for _, o := range rendered(t, values) {
			if o.kind() != "StatefulSet" {
				continue
			}
			site := text(o, "metadata", "labels", "samya-db.github.io/site")
			hook := texts(o, "spec", "template", "spec", "containers", 0, "lifecycle", "preStop", "exec", "command")
			if marked[site] != (slices.Contains(hook, "drain") && slices.Contains(hook, site)) {
				t.Errorf("%s: %s ends with %v", name, site, hook)
			}
			if marked[site] {
				drains++
				if grace, ok := at(o, "spec", "template", "spec", "terminationGracePeriodSeconds").(int); !ok || grace < 2700 {
					t.Errorf("%s: %s is killed after %v s", name, site, grace)
				}
			}
			want := "RollingUpdate"
			if len(list(values, "sites")) > 1 && !marked[site] || text(values, "site", "updateStrategy") == "OnDelete" {
				want = "OnDelete"
			}
			if got := text(o, "spec", "updateStrategy", "type"); got != want {
				t.Errorf("%s: %s has the update strategy %s, want %s", name, site, got, want)
			}
			for _, when := range []string{"whenDeleted", "whenScaled"} {
				if text(o, "spec", "persistentVolumeClaimRetentionPolicy", when) != "Retain" {
					t.Errorf("%s: the disk of %s does not stay", name, site)
				}
			}
		}
	}
	if drains == 0 {
		t.Error("no file of values has a site that drains")
	}
}

// TestVersions: the chart of a checkout names no release; the release builder sets both.
func TestVersions(t *testing.T) {
	c, err := load()
	if err != nil {
		t.Fatal(err)
	}
	if c.Metadata.Version != "0.0.0" || c.Metadata.AppVersion != "v0.0.0" {
		t.Errorf("versions %s and %s: they are set by tools/release", c.Metadata.Version, c.Metadata.AppVersion)
	}
	// Its files are those that everybody has: links are followed.
	for file, of := range map[string]string{"files/alerts.yml": "alerts.yml", "files/recording.yml": "recording.yml", "files/dashboard.json": "dashboard.json"} {
		want, err := os.ReadFile(Root + "/deploy/monitoring/" + of)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(c.Files, func(f *common.File) bool { return f.Name == file })
		if i < 0 || string(c.Files[i].Data) != string(want) {
			t.Errorf("the chart's %s is not deploy/monitoring/%s", file, of)
		}
	}
}

// TestNotes: the notes come out, and tell the way to restart several sites.
func TestNotes(t *testing.T) {
	for name, values := range all(t) {
		files, err := renderFiles(values, nil)
		if err != nil {
			t.Fatal(err)
		}
		notes := files["samya/templates/NOTES.txt"]
		if len(list(values, "sites")) > 1 && text(values, "site", "updateStrategy") == "" && !strings.Contains(notes, "delete pod samya-us-0") {
			t.Errorf("%s: no word on restarts:\n%s", name, notes)
		}
		if strings.Contains(notes, "<no value>") || !strings.Contains(notes, "cluster") {
			t.Errorf("%s:\n%s", name, notes)
		}
	}
}

func TestMain(m *testing.M) {
	flag.Parse()
	// Helm logs links that it follows.
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// sortedKeys returns the keys of m in their order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
