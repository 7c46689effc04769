package monitoring

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/samya-db/samya/client"
	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/buildtest"
	"github.com/samya-db/samya/internal/devca"
	"github.com/samya-db/samya/internal/tlsconf"
	"github.com/samya-db/samya/internal/wan"
	"github.com/samya-db/samya/site/standby"
)

// exposed holds the labels, and the values seen of each, by metric.
type exposed map[string]map[string]map[string]bool

func (e exposed) add(metric string, labels map[string]string) {
	if e[metric] == nil {
		e[metric] = make(map[string]map[string]bool)
	}
	for l, v := range labels {
		if e[metric][l] == nil {
			e[metric][l] = make(map[string]bool)
		}
		e[metric][l][v] = true
	}
}

// scrape returns the metrics of a site and an app manager after requests of the usual
// kinds.
func scrape(t *testing.T) exposed {
	t.Helper()
	dir := t.TempDir()
	bin, err := buildtest.Samya(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cluster, err := proc.Start(ctx, proc.Config{Bin: bin, Dir: dir, Sites: []string{"us", "eu"}, AppManagers: []string{"us"}, SiteArgs: []string{"--metrics-entities", "acme/"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cluster.Stop(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	}()
	c, err := client.New(client.Config{Targets: []client.Target{{Address: "passthrough:///" + cluster.AppManager(0).GRPC}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(ctx) }()
	try := func(what string, f func() error) {
		t.Helper()
		for {
			err := f()
			if err == nil {
				return
			}
			if wan.Wait(ctx, 50*time.Millisecond) != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
	}
	try("create", func() error {
		if err := c.CreateEntity(ctx, "acme/vm", 10); !errors.Is(err, client.ErrEntityExists) {
			return err
		}
		return nil
	})
	try("acquire", func() error { _, err := c.Acquire(ctx, "acme/vm", 1); return err })
	try("release", func() error { _, err := c.Release(ctx, "acme/vm", 1); return err })
	try("read", func() error {
		read, err := c.Entity(ctx, "acme/vm")
		if err == nil && !read.Consistent {
			err = errors.New("not consistent yet")
		}
		return err
	})
	all := make(exposed)
	for _, p := range append(cluster.Sites(), cluster.AppManager(0)) {
		if err := all.from(ctx, p.HTTP); err != nil {
			t.Errorf("metrics of %s: %v", p.Name, err)
		}
	}
	guarded(t, all)
	registry := prometheus.NewRegistry()
	registry.MustRegister(standby.Metrics())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		all.family(f)
	}
	return all
}

// guarded adds the metrics of processes with certificates and an access file.
func guarded(t *testing.T, all exposed) {
	t.Helper()
	dir := t.TempDir()
	ca, err := devca.Create(dir, "prod", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := ca.Issue(tlsconf.Identity{Kind: tlsconf.Site, Name: "us"}, []string{"127.0.0.1"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	files := tlsconf.Files{Cert: cert, Key: key, CA: filepath.Join(dir, devca.CertFile), CRL: filepath.Join(dir, devca.CRLFile)}
	certs, err := tlsconf.Open(files, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	guard, err := access.Open(access.Config{TLS: certs})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := guard.Close(); err != nil {
			t.Error(err)
		}
	}()
	registry := prometheus.NewRegistry()
	registry.MustRegister(guard)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		all.family(f)
	}
}

// from adds the metrics of a process.
func (e exposed) from(ctx context.Context, addr string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		return err
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return err
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return err
	}
	for _, f := range families {
		e.family(f)
	}
	return lint(ctx, text)
}

// lint checks an exposition against the rules of names, help texts and labels.
func lint(ctx context.Context, text []byte) error {
	bin, err := exec.LookPath("promtool")
	if err != nil {
		return nil //nolint:nilerr // TestSyntax says whether promtool has to be here
	}
	cmd := exec.CommandContext(ctx, bin, "check", "metrics")
	cmd.Stdin = bytes.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		return fmt.Errorf("promtool check metrics: %w: %s", cmp.Or(err, errUnclean), out)
	}
	return nil
}

// errUnclean stands for findings that leave promtool's exit status at zero.
var errUnclean = errors.New("not clean")

// family adds a metric.
func (e exposed) family(f *dto.MetricFamily) {
	name := f.GetName()
	for _, m := range f.GetMetric() {
		labels := make(map[string]string)
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if m.GetHistogram() == nil {
			e.add(name, labels)
			continue
		}
		e.add(name+"_sum", labels)
		e.add(name+"_count", labels)
		labels["le"] = "+Inf"
		e.add(name+"_bucket", labels)
	}
}
