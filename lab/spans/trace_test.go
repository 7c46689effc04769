package spans_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/samya-db/samya/client"
	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/buildtest"
	"github.com/samya-db/samya/internal/race"
	"github.com/samya-db/samya/lab/spans"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// patience bounds every wait for something that takes far less.
const patience = 30 * time.Second

// TestTraceOfAnAcquireThatWaits has a client acquire more tokens than the nearest site has, by an
// app manager. It wants the spans of all processes that took part in a single tree: those of
// direct transfers, and of an instance that a majority decides.
func TestTraceOfAnAcquireThatWaits(t *testing.T) {
	race.OtherProcesses(t)
	bin, err := buildtest.Samya(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		flags []string
		// steps are paths of names in the tree, from the root, with the processes.
		steps []string
	}{
		{"transfer", []string{"--strategy", "transfer"}, []string{
			"checkout@client/samya.acquire@client/samya.v1.TokenService/Acquire@am/samya.route@am/samya.v1.TokenService/Acquire@us/samya.wait@us/" +
				"samya.transfer@us/samya.transfer.give@peer/samya.transfer.receive@us",
			"checkout@client/samya.acquire@client/samya.v1.TokenService/Acquire@am/samya.route@am/samya.v1.TokenService/Acquire@us/samya.wait@us/" +
				"samya.transfer@us/samya.transfer.give@peer/samya.commit@peer",
		}},
		{"instance", []string{"--strategy", "instance", "--protocol", "majority"}, []string{
			"checkout@client/samya.acquire@client/samya.v1.TokenService/Acquire@am/samya.route@am/samya.v1.TokenService/Acquire@us/samya.wait@us/" +
				"samya.instance@us/samya.instance.promise@peer/samya.commit@peer",
			"checkout@client/samya.acquire@client/samya.v1.TokenService/Acquire@am/samya.route@am/samya.v1.TokenService/Acquire@us/samya.wait@us/" +
				"samya.instance@us/samya.instance.accept@peer/samya.commit@peer",
			"checkout@client/samya.acquire@client/samya.v1.TokenService/Acquire@am/samya.route@am/samya.v1.TokenService/Acquire@us/samya.wait@us/" +
				"samya.instance@us/samya.instance.apply@peer",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := receiver(t)
			cluster := start(t, bin, tc.flags)
			id := acquire(t, cluster)
			var trees []*spans.Node
			var missing []string
			eventually(t, func() bool {
				trees = spans.Trees(r.Spans(), id)
				missing = slices.DeleteFunc(slices.Clone(tc.steps), func(step string) bool { return len(trees) == 1 && has(trees[0], step) })
				return len(missing) == 0
			})
			for _, tree := range trees {
				t.Logf("\n%s", tree)
			}
			if len(trees) != 1 {
				t.Errorf("%d trees, want one", len(trees))
			}
			for _, step := range missing {
				t.Errorf("the tree lacks %s", step)
			}
			if len(trees) == 1 {
				judge(t, trees[0])
			}
			exemplars(t, cluster, id)
			problem(t, cluster)
		})
	}
}

// judge checks what holds for each tree: the processes, their descriptions, and the times.
func judge(t *testing.T, tree *spans.Node) {
	t.Helper()
	processes := make(map[string]bool)
	tree.Each(func(n, above *spans.Node) {
		processes[n.Process] = true
		if n.Ended < n.Began {
			t.Errorf("%s ends before it begins", n.Name)
		}
		// The processes share a clock.
		if above != nil && n.Began < above.Began {
			t.Errorf("%s begins %d ns before %s", n.Name, above.Began-n.Began, above.Name)
		}
		if n.Process != "samya-client test" && (n.Resource["service.namespace"] != "traces" || n.Resource["cloud.region"] == "" || n.Resource["service.version"] == "") {
			t.Errorf("%s comes from %v", n.Name, n.Resource)
		}
		if n.Name == "samya.wait" && (n.Attributes["samya.entity"] != "acme/vm" || n.Attributes["samya.tokens"] != "150" || n.Attributes["samya.outcome"] != "granted") {
			t.Errorf("the wait has %v", n.Attributes)
		}
		committed := n.Name == "samya.commit" || n.Process == "samya-site us" && n.Name == "samya.v1.TokenService/Acquire"
		if committed && n.Attributes["samya.commit.requests"] == "" {
			t.Errorf("%s has %v", n.Name, n.Attributes)
		}
	})
	if len(processes) < 4 {
		t.Errorf("spans of %v, want at least 4 processes", processes)
	}
}

// exemplars checks that the trace is an exemplar in the metrics of the app manager and the site.
func exemplars(t *testing.T, cluster *proc.Cluster, id string) {
	t.Helper()
	for _, p := range []*proc.Process{cluster.AppManager(0), cluster.Site(0)} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.HTTP+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
		text := fetch(t, req)
		if !strings.HasSuffix(text, "\n# EOF\n") {
			t.Errorf("%s answers something else than OpenMetrics", p.Name)
		}
		if !strings.Contains(text, " # {trace_id=\""+id+"\"} ") {
			t.Errorf("%s has no exemplar %s", p.Name, id)
		}
	}
}

// problem checks that a refusal over HTTP tells the trace of its traceparent.
func problem(t *testing.T, cluster *proc.Cluster) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+cluster.AppManager(0).HTTP+"/v1/entities/acme%2Fvm:acquire", strings.NewReader(`{"tokens":301}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if text := fetch(t, req); !strings.Contains(text, `"reason":"EXCEEDS_LIMIT"`) || !strings.Contains(text, `"trace_id":"0af7651916cd43dd8448eb211c80319c"`) {
		t.Errorf("answered %s", text)
	}
}

func fetch(t *testing.T, req *http.Request) string {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// has reports whether a path of spans is in a tree. The process peer is any site but us.
func has(n *spans.Node, path string) bool {
	// The name of a method has a slash.
	const method = "samya.v1.TokenService/Acquire"
	step, rest, more := strings.Cut(path, "/")
	if strings.HasPrefix(path, method) {
		step, rest, more = strings.Cut(strings.Replace(path, method, "method", 1), "/")
		step = strings.Replace(step, "method", method, 1)
	}
	name, process, _ := strings.Cut(step, "@")
	is := map[string]bool{
		"client": n.Process == "samya-client test", "am": n.Process == "samya-appmgr am-us", "us": n.Process == "samya-site us",
		"peer": n.Process == "samya-site eu" || n.Process == "samya-site as",
	}
	if n.Name != name || !is[process] {
		return false
	}
	return !more || slices.ContainsFunc(n.Children, func(c *spans.Node) bool { return has(c, rest) })
}

// receiver starts a receiver, to which processes started from now on send their spans.
func receiver(t *testing.T) *spans.Receiver {
	t.Helper()
	r, err := spans.Listen(t.Context(), "127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + r.Addr(), "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_BSP_SCHEDULE_DELAY": "50",
	} {
		t.Setenv(name, value)
	}
	return r
}

func start(t *testing.T, bin string, flags []string) *proc.Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	c, err := proc.Start(ctx, proc.Config{
		Bin: bin, Dir: t.TempDir(), Cluster: "traces", Sites: []string{"us", "eu", "as"}, AppManagers: []string{"us"}, SiteArgs: flags,
		// The distances of regions of the earth, which the tree shows.
		Latency: "samya",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// acquire has a client acquire 150 of 300 tokens, of which each site has 100, within a trace. It
// returns the id of the trace.
func acquire(t *testing.T, cluster *proc.Cluster) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	addr := cluster.AppManager(0).GRPC
	create(ctx, t, addr)
	exporter, err := otlptracegrpc.New(ctx)
	if err != nil {
		t.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(resource.NewSchemaless(
		attribute.String("service.name", "samya-client"), attribute.String("service.instance.id", "test"))))
	defer func() {
		if err := provider.Shutdown(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	}()
	c, err := client.New(client.Config{Targets: []client.Target{{Address: addr}}, FixedTargets: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.WithoutCancel(ctx))
	// Once it has measured the sites, the app manager asks the one in its own region.
	eventually(t, func() bool {
		grant, err := c.Acquire(ctx, "acme/vm", 1, client.DryRun())
		return err == nil && grant.Site == "us"
	})
	ctx, span := provider.Tracer("test").Start(ctx, "checkout")
	grant, err := c.Acquire(ctx, "acme/vm", 150)
	span.End()
	if err != nil || grant.Site != "us" {
		t.Fatalf("granted %+v, %v", grant, err)
	}
	return span.SpanContext().TraceID().String()
}

// create creates the entity, as soon as the sites have agreed on it.
func create(ctx context.Context, t *testing.T, addr string) {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	eventually(t, func() bool {
		_, err = samyav1.NewEntityServiceClient(conn).CreateEntity(ctx, &samyav1.CreateEntityRequest{Name: "acme/vm", Limit: 300, RequestId: "create"})
		return err == nil
	})
}

// eventually polls until ok, or fails the test later.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			return
		}
	}
}

func TestMain(m *testing.M) {
	// What the environment says of traces is the tests' alone.
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, "OTEL_") {
			if err := os.Unsetenv(name); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { fmt.Fprintln(os.Stderr, err) }))
	os.Exit(m.Run())
}
