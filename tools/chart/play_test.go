package chart

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// patience bounds each wait of a test of real processes.
const patience = 60 * time.Second

// samyaProgram is the path of the program, which `make build` builds.
func samyaProgram(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(Root + "/bin/samya")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("no program: make build")
	}
	return path
}

// network hands out addresses of loopback, each a machine's, and knows them by host name.
type network struct {
	prefix string
	next   int
	hosts  map[string]string
}

// networks counts the networks of this process.
var networks atomic.Int32

// newNetwork takes a part of loopback that the process id chooses: tests run side by side.
func newNetwork() *network {
	return &network{prefix: fmt.Sprintf("127.%d.%d.", 100+os.Getpid()%100, (os.Getpid()/100+100*int(networks.Add(1)))%250), hosts: make(map[string]string)}
}

func (n *network) address() string {
	n.next++
	return fmt.Sprintf("%s%d", n.prefix, n.next)
}

// resolve replaces the host names in a text by addresses, as nobody answers DNS here. A
// longer name goes before its own beginning.
func (n *network) resolve(s string) string {
	for name, address := range n.hosts {
		s = regexp.MustCompile(`(^|[=,/@])`+regexp.QuoteMeta(name)+`:`).ReplaceAllString(s, "${1}"+address+":")
	}
	return s
}

// process is a running container.
type process struct {
	name, address string
	cmd           *exec.Cmd
	log           *bytes.Buffer
	done          chan error
}

// start starts a command line. It ends with the test.
func start(t *testing.T, name, address, bin string, args, env []string) *process {
	t.Helper()
	p := &process{name: name, address: address, log: new(bytes.Buffer), done: make(chan error, 1)}
	p.cmd = exec.Command(bin, args...)
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = env, p.log, p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.done <- p.cmd.Wait() }()
	t.Cleanup(func() {
		p.stop(t)
		if t.Failed() {
			t.Logf("the end of the log of %s:\n%s", name, tail(p.log.String()))
		}
	})
	return p
}

func tail(s string) string {
	return s[max(0, len(s)-1500):]
}

// stop stops the process as a kubelet does, and waits for the end.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if p.done == nil {
		return
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err == nil {
		select {
		case err := <-p.done:
			// etcd ends by the signal itself.
			if err != nil && p.name != "etcd" {
				t.Errorf("%s ended with %v", p.name, err)
			}
		case <-time.After(patience):
			t.Errorf("%s does not stop", p.name)
			_ = p.cmd.Process.Kill() // it was given its time
		}
	}
	p.done = nil
}

// left waits for the end of a site that has left, which ends by itself once another site
// tells it so, or as it is told to stop.
func (p *process) left(t *testing.T) {
	t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // unless it has ended
	select {
	case err := <-p.done:
		if err != nil && !strings.Contains(p.log.String(), "it has left") {
			t.Errorf("%s ended with %v", p.name, err)
		}
	case <-time.After(patience):
		t.Errorf("%s does not stop", p.name)
	}
	p.done = nil
}

// run runs a command to its end, and returns its output.
func run(t *testing.T, bin string, args []string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Env = []string{}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// eventually waits until f returns no error.
func eventually(t *testing.T, what string, f func() error) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// kubelet asks as a kubelet does: it takes any certificate, and shows none.
var kubelet = &http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
}}

// probe asks the probe of a container at an address.
func probe(c map[string]any, which, address string) error {
	port := ""
	for _, p := range list(c, "ports") {
		if text(p, "name") == text(c, which, "httpGet", "port") {
			port = fmt.Sprint(at(p, "containerPort"))
		}
	}
	to := strings.ToLower(text(c, which, "httpGet", "scheme")) + "://" + net.JoinHostPort(address, port) + text(c, which, "httpGet", "path")
	answer, err := kubelet.Get(to)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	b, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", to, answer.Status, b)
	}
	return err
}

// authority stands in for cert-manager: it makes what Certificates ask for.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key}
}

// pem returns the certificate of the authority.
func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// list returns a list of revoked certificates: it is empty.
func (a *authority) list(t *testing.T) []byte {
	t.Helper()
	der, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{
		Number: big.NewInt(1), ThisUpdate: time.Now().Add(-time.Minute), NextUpdate: time.Now().Add(time.Hour),
	}, a.cert, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})
}

// issue returns the content of the Secret of a Certificate.
func (a *authority) issue(t *testing.T, o object) map[string][]byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour), DNSNames: texts(o, "spec", "dnsNames"),
	}
	for _, u := range texts(o, "spec", "uris") {
		parsed, err := url.Parse(u)
		if err != nil {
			t.Fatal(err)
		}
		template.URIs = append(template.URIs, parsed)
	}
	for _, usage := range texts(o, "spec", "usages") {
		switch usage {
		case "digital signature":
			template.KeyUsage |= x509.KeyUsageDigitalSignature
		case "client auth":
			template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
		case "server auth":
			template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		default:
			t.Fatalf("a certificate for %q", usage)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, b []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}) }
	return map[string][]byte{
		"tls.crt": block("CERTIFICATE", der), "tls.key": block("PRIVATE KEY", private), "ca.crt": block("CERTIFICATE", a.cert.Raw),
	}
}

// secretsOf returns the contents of all Secrets that come of objects, by name.
func secretsOf(t *testing.T, a *authority, objects []object, before map[string]map[string][]byte) map[string]map[string][]byte {
	t.Helper()
	secrets := make(map[string]map[string][]byte)
	for _, o := range objects {
		name := o.name()
		switch o.kind() {
		case "Secret":
			secrets[name] = make(map[string][]byte)
			for key, value := range asMap(o["data"]) {
				b, err := base64.StdEncoding.DecodeString(value.(string))
				if err != nil {
					t.Fatalf("%s: %s: %v", name, key, err)
				}
				secrets[name][key] = b
			}
		case "Certificate":
			if name = text(o, "spec", "secretName"); at(o, "spec", "isCA") != true {
				secrets[name] = a.issue(t, o)
			}
		}
		// What is there stays, as a chart finds its own gossip key again.
		if there := before[name]; there != nil && secrets[name] != nil && name != release+"-access" {
			secrets[name] = there
		}
	}
	return secrets
}
