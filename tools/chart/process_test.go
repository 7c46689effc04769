package chart

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// machine runs the pods of a release as processes: each has an address of its own on
// loopback, the files of its volumes in a directory, and nothing else in its environment.
type machine struct {
	t       *testing.T
	bin     string
	dir     string
	net     *network
	ca      *authority
	secrets map[string]map[string][]byte
	objects []object
	running map[string]*process
}

// apply renders the chart with values in place of what was there. It starts nothing.
func (m *machine) apply(values map[string]any) {
	m.t.Helper()
	m.objects = rendered(m.t, values)
	m.secrets = secretsOf(m.t, m.ca, m.objects, m.secrets)
}

// fields are the fields of a pod that its environment may have.
func fields(pod, address string) map[string]string {
	return map[string]string{"status.podIP": address, "metadata.name": pod}
}

// line returns the command line and the environment of a container of a pod, with the
// pod's files in place.
func (m *machine) line(template, c map[string]any, args []string, pod, address string) (line, env []string) {
	m.t.Helper()
	root := filepath.Join(m.dir, pod)
	sources := make(map[string]map[string][]byte)
	for _, v := range list(template, "spec", "volumes") {
		name := text(v, "secret", "secretName") + text(v, "configMap", "name")
		if text(v, "persistentVolumeClaim", "claimName") != "" {
			continue
		}
		if sources[text(v, "name")] = m.secrets[name]; m.secrets[name] == nil {
			m.t.Fatalf("%s: no Secret or ConfigMap %s", pod, name)
		}
	}
	for _, mount := range list(c, "volumeMounts") {
		dir := filepath.Join(root, text(mount, "mountPath"))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			m.t.Fatal(err)
		}
		for name, b := range sources[text(mount, "name")] {
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				m.t.Fatal(err)
			}
		}
	}
	value := make(map[string]string)
	for _, e := range list(c, "env") {
		v := text(e, "value")
		if field := text(e, "valueFrom", "fieldRef", "fieldPath"); field != "" {
			v = fields(pod, address)[field]
		}
		value[text(e, "name")] = v
		env = append(env, text(e, "name")+"="+v)
	}
	for _, arg := range args {
		for name, v := range value {
			arg = strings.ReplaceAll(arg, "$("+name+")", v)
		}
		arg = strings.ReplaceAll(arg, "=0.0.0.0:", "="+address+":") // the others' processes are here too
		for _, path := range []string{"/etc/samya/", "/var/lib/samya/", "/backups/"} {
			arg = strings.ReplaceAll(arg, "="+path, "="+root+path)
		}
		line = append(line, m.net.resolve(arg))
	}
	return line, env
}

// template returns the template of a workload, and its only container.
func (m *machine) template(workload string) (template, container map[string]any) {
	m.t.Helper()
	template = pods(m.objects)[workload]
	if template == nil {
		m.t.Fatalf("no %s", workload)
	}
	return template, containers(template)[0]
}

// start starts a pod of a workload at an address, under host names.
func (m *machine) start(workload, pod, address string, hosts ...string) {
	m.t.Helper()
	for _, host := range hosts {
		m.net.hosts[host] = address
	}
	template, c := m.template(workload)
	line, env := m.line(template, c, texts(c, "args"), pod, address)
	m.running[pod] = start(m.t, pod, address, m.bin, line, env)
}

// site starts the pod of a site.
func (m *machine) site(site, address string) {
	m.t.Helper()
	m.start("StatefulSet/"+release+"-"+site, release+"-"+site+"-0", address, fmt.Sprintf("%s-%s.%s.svc", release, site, namespace))
}

// ready waits until the probes of a pod succeed.
func (m *machine) ready(workload, pod string) {
	m.t.Helper()
	_, c := m.template(workload)
	for _, which := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
		eventually(m.t, pod+": "+which, func() error { return probe(c, which, m.running[pod].address) })
	}
}

func (m *machine) siteReady(site string) {
	m.t.Helper()
	m.ready("StatefulSet/"+release+"-"+site, release+"-"+site+"-0")
}

// commands runs the containers of a pod of commands in turn.
func (m *machine) commands(workload string) string {
	m.t.Helper()
	template := pods(m.objects)[workload]
	if template == nil {
		m.t.Fatalf("no %s", workload)
	}
	var all strings.Builder
	for _, c := range containers(template) {
		out, err := run(m.t, m.bin, m.commandLine(template, c, texts(c, "args"), "command"))
		if err != nil {
			m.t.Fatalf("%s: %s: %v: %s", workload, text(c, "name"), err, out)
		}
		all.WriteString(out)
	}
	return all.String()
}

// commandLine is line for a command that talks to the cluster: it is told the host that
// it dials by address here.
func (m *machine) commandLine(template, c map[string]any, args []string, pod string) []string {
	line, _ := m.line(template, c, args, pod, "")
	for _, arg := range args {
		host, dials := strings.CutPrefix(arg, "--addr=https://")
		if site, ok := strings.CutPrefix(arg, "--site="); ok && strings.Contains(site, ":") {
			host, dials = site, true
		}
		if dials {
			return append(line, "--tls-server-name="+host[:strings.LastIndex(host, ":")])
		}
	}
	return line
}

// admin runs a command as the administrator.
func (m *machine) admin(args ...string) (string, error) {
	m.t.Helper()
	template, c := m.template("Pod/" + release + "-test")
	flags := texts(c, "args")
	i := slices.IndexFunc(flags, func(s string) bool { return strings.HasPrefix(s, "--addr=") })
	return run(m.t, m.bin, m.commandLine(template, c, append(slices.Clone(args), flags[i:]...), "admin"))
}

// job returns the name of the job of members.
func (m *machine) job() string {
	m.t.Helper()
	for pod := range pods(m.objects) {
		if strings.HasPrefix(pod, "Job/"+release+"-members-") {
			return pod
		}
	}
	m.t.Fatal("no job of members")
	return ""
}

// newMachine returns a machine without pods.
func newMachine(t *testing.T) *machine {
	t.Helper()
	return &machine{
		t: t, bin: samyaProgram(t), dir: t.TempDir(), net: newNetwork(), ca: newAuthority(t),
		secrets: make(map[string]map[string][]byte), running: make(map[string]*process),
	}
}

// TestProcesses runs what the chart renders as processes of this machine: five sites and
// app managers, with certificates as cert-manager makes them. Then a pod comes back at
// another address, a site leaves, and another one joins.
func TestProcesses(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	values := all(t)["trial"]
	// The durations are those of a test.
	values["site"].(map[string]any)["settings"] = map[string]any{"request-retention": "8s", "clock-skew": "1s"}
	values["appManager"].(map[string]any)["settings"] = map[string]any{"repeat-time": "1s"}
	m.apply(values)

	sites := []string{"us", "as", "eu", "au", "sa"}
	addresses := make(map[string]string)
	for _, site := range sites {
		addresses[site] = m.net.address()
		m.net.hosts[fmt.Sprintf("%s-%s.%s.svc", release, site, namespace)] = addresses[site]
	}
	for _, site := range sites {
		m.site(site, addresses[site])
	}
	for _, region := range []string{"us", "eu"} {
		m.start("Deployment/"+release+"-am-"+region, "am-"+region, m.net.address(), release+"."+namespace+".svc")
	}
	for _, site := range sites {
		m.siteReady(site)
	}
	for _, region := range []string{"us", "eu"} {
		m.ready("Deployment/"+release+"-am-"+region, "am-"+region)
	}
	t.Logf("five sites and two app managers are ready; helm test says:\n%s", m.commands("Pod/"+release+"-test"))

	// A request without a certificate or token is refused.
	answer, err := kubelet.Get("https://" + m.running["am-us"].address + ":8080/v1/entities")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close() // which tells no more
	if answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a certificate: %s", answer.Status)
	}

	// A pod comes back on its disk, at another address.
	mustAdmin(t, m, "entity", "create", "acme/seats", "--limit=1000")
	mustAdmin(t, m, "acquire", "acme/seats", "30")
	m.running[release+"-us-0"].stop(t)
	m.site("us", m.net.address())
	m.siteReady("us")
	eventually(t, "the books after a restart", func() error { return acquired(m, 30) })
	t.Log("the site us is back at another address, with what it held")

	// A backup of it.
	m.commands("CronJob/" + release + "-us-backup")
	file := filepath.Join(m.dir, "command/backups/command.backup")
	if out, err := run(t, m.bin, []string{"backup", "verify", file}); err != nil || !strings.Contains(out, "us") {
		t.Errorf("the backup of us: %v: %s", err, out)
	}

	// A site leaves: the release is upgraded, its pod restarts with the hook, the job begins the
	// drain. Once the StatefulSet is deleted the hook ends when the site is gone.
	draining := maps.Clone(values)
	draining["sites"] = []any{map[string]any{"name": "us"}, map[string]any{"name": "as"}, map[string]any{"name": "eu", "state": "draining", "heir": "us"}, map[string]any{"name": "au"}, map[string]any{"name": "sa"}}
	m.apply(draining)
	m.running[release+"-eu-0"].stop(t)
	m.site("eu", addresses["eu"])
	m.siteReady("eu")
	m.commands(m.job())
	m.commands(m.job()) // a repeat does no harm
	template, c := m.template("StatefulSet/" + release + "-eu")
	hook := m.commandLine(template, c, texts(c, "lifecycle", "preStop", "exec", "command"), release+"-eu-0")
	for range 2 { // and once it is gone the hook has nothing to do
		if out, err := run(t, m.bin, hook[1:]); err != nil || !strings.Contains(out, "eu has left") {
			t.Fatalf("the preStop of eu: %v: %s", err, out)
		}
	}
	m.commands(m.job())
	m.running[release+"-eu-0"].left(t)
	eventually(t, "the books after a drain", func() error { return acquired(m, 30) })
	t.Log("the site eu has left by its preStop, and us has its tokens")

	// A new site joins: it is no founder, and the job asks for its seat.
	joining := maps.Clone(values)
	joining["sites"] = []any{map[string]any{"name": "us"}, map[string]any{"name": "as"}, map[string]any{"name": "au"}, map[string]any{"name": "sa"}, map[string]any{"name": "eu-2", "region": "eu"}}
	m.apply(joining)
	m.site("eu-2", m.net.address())
	m.commands(m.job())
	m.siteReady("eu-2")
	m.commands(m.job())
	if out := mustAdmin(t, m, "member", "list"); !strings.Contains(out, "eu-2") {
		t.Errorf("the members:\n%s", out)
	}
	t.Log("the site eu-2 has joined by the job")
}

// TestRegions runs three releases of a cluster, a region each, with the values of a region:
// an authority, a bundle of authorities, revocation lists and a gossip key that the regions
// share, and callers with tokens. Releases know each other by seeds alone.
func TestRegions(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.secrets["samya-gossip-shared"] = map[string][]byte{"gossip.key": []byte(base64.StdEncoding.EncodeToString(make([]byte, 32)) + "\n")}
	m.secrets["samya-roots"] = map[string][]byte{"ca.crt": m.ca.pem()}
	m.secrets["samya-crl"] = map[string][]byte{"crl.pem": m.ca.list(t)}
	const token = "a token of the caller billing"
	sum := sha256.Sum256([]byte(token))
	regions := []string{"us-west1", "europe-west2", "asia-east2"}
	for _, region := range regions {
		m.net.hosts["gossip."+region+".example"] = m.net.address()
	}
	started := make(map[string][]object)
	for i, region := range regions {
		values := all(t)["region"]
		cluster := asMap(values["cluster"])
		cluster["founders"] = []any{regions[0], regions[1], regions[2]}
		cluster["seeds"] = []any{"gossip." + regions[(i+1)%3] + ".example:7201"}
		asMap(list(values, "sites")[0])["name"] = region
		asMap(list(values, "sites")[0])["region"] = region
		asMap(list(values, "access", "callers")[0])["token_sha256"] = hex.EncodeToString(sum[:])
		shared := maps.Clone(m.secrets)
		m.apply(values)
		for name, content := range shared {
			if m.secrets[name] == nil {
				m.secrets[name] = content
			}
		}
		address := m.net.hosts["gossip."+region+".example"]
		m.start("StatefulSet/samya-"+region, "samya-"+region+"-0", address, "samya-"+region+".quota.svc")
		m.start("Deployment/samya-am-"+region, "samya-am-"+region+"-1", m.net.address())
		started[region] = m.objects
	}
	for _, region := range regions {
		m.objects = started[region]
		m.siteReady(region)
		m.ready("Deployment/samya-am-"+region, "samya-am-"+region+"-1")
	}
	first, last := m.running["samya-am-us-west1-1"].address, m.running["samya-am-asia-east2-1"].address
	m.net.hosts["samya.quota.svc"] = first
	mustAdmin(t, m, "entity", "create", "acme/seats", "--limit=900")
	// A caller with a token, in another region.
	file, ca := filepath.Join(m.dir, "token"), filepath.Join(m.dir, "ca.pem")
	if err := errors.Join(os.WriteFile(file, []byte(token+"\n"), 0o600), os.WriteFile(ca, m.ca.pem(), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"acme/seats", "beta/seats"} {
		out, err := run(t, m.bin, []string{"acquire", name, "30", "--addr=https://" + last + ":8080", "--tls-server-name=api.samya.example", "--tls-ca=" + ca, "--token-file=" + file})
		if allowed := name == "acme/seats"; allowed != (err == nil) || !allowed && !strings.Contains(out, "PERMISSION") {
			t.Fatalf("%s by the caller billing: %v: %s", name, err, out)
		}
	}
	eventually(t, "the books of three regions", func() error { return acquired(m, 30) })
	t.Log("three releases are a cluster; a caller with a token acquires in a region, and another region knows")
}

func mustAdmin(t *testing.T, m *machine, args ...string) string {
	t.Helper()
	out, err := m.admin(args...)
	if err != nil {
		t.Fatalf("%v: %v: %s", args, err, out)
	}
	return out
}

// acquired reports whether the tokens out are as many as they should be.
func acquired(m *machine, want int) error {
	out, err := m.admin("entity", "get", "acme/seats", "--json")
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if !strings.Contains(strings.ReplaceAll(out, " ", ""), fmt.Sprintf(`"acquired":%d,`, want)) {
		return fmt.Errorf("not %d: %s", want, out)
	}
	return nil
}
