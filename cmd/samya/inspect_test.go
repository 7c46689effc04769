package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/inspection"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// golden compares an output with a file in testdata.
func golden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\n%s says\n%s", got, path, want)
	}
}

// TestInspect: the output matches testdata; run it with -update and look.
func TestInspect(t *testing.T) {
	s := newShell(t)
	for _, c := range []struct{ file, line string }{
		{"inspect.txt", "site inspect"},
		{"inspect_over.txt", "site inspect --site us --over 1ms"},
	} {
		code, stdout, stderr := s.run(c.line)
		if code != exitOK || stderr != "" {
			t.Errorf("samya %s: exit status %d: %s", c.line, code, stderr)
		}
		golden(t, c.file, stdout)
		for line := range strings.Lines(stdout) {
			if n := len([]rune(line)); n > 100 {
				t.Errorf("a line of %d characters: %s", n, line)
			}
		}
	}
	code, stdout, _ := s.run("site inspect --site us --json")
	var got inspection.Status
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitOK || !got.Complete || len(got.Sites) != 1 ||
		got.Sites[0].Served != 5_952_021+3*980 || got.Sites[0].Split[0].Left[2] != 1247 {
		t.Errorf("exit status %d, %v: %s", code, err, stdout)
	}
	want := []string{"/v1/sites:inspect", "/v1/sites:inspect?site=us", "/v1/sites:inspect?site=us", "/v1/sites:inspect?site=us"}
	for i, r := range s.manager.Requests() {
		if i >= len(want) || r != "GET "+want[i] {
			t.Errorf("request %d is %s", i, r)
		}
	}
}

// TestInspectOnThePage: docs/partitions.md shows the output of site inspect.
func TestInspectOnThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/partitions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, stdout, _ := newShell(t).run("site inspect --site us")
	var shown strings.Builder
	for line := range strings.Lines(stdout) {
		if line != "\n" {
			line = "    " + line
		}
		shown.WriteString(line)
	}
	if stdout == "" || !strings.Contains(string(page), shown.String()) {
		t.Errorf("the page does not show\n%s", shown.String())
	}
}

func TestInspectionOfAnySite(t *testing.T) {
	many := inspection.Site{Site: "us", Known: true, UpMS: 61_400, Partitions: make([]inspection.Partition, 18)}
	left := make([]int64, 18)
	for i := range left {
		left[i] = int64(100 * i)
	}
	many.Split = []inspection.Split{{Name: "acme", Left: left, Operations: 1}, {Name: "b"}, {Name: "c", Left: left[:1]}}
	many.Partitions[3].Operations, many.Partitions[4].Operations, left[1] = 1_000_000, 1, -100
	many.Served, many.Cross, many.Imbalance = 1_000_000, 1, 18
	many.Repartitioning.Pause = inspection.Pause{Count: 1, P50: 999.4, P99: 1020.6, Max: 2_500_000}
	one := inspection.Site{Site: "eu", Known: true, UpMS: 900, Partitions: []inspection.Partition{{Entities: 1, Operations: 1}}, Served: 1, Imbalance: 1}
	one.Repartitioning = inspection.Repartitioning{On: true, Computed: 1, Moved: 1, LastCutMS: .25}
	var b strings.Builder
	printInspection(&b, inspection.Status{Complete: true, Sites: []inspection.Site{
		{Site: "as", Known: true}, {Site: "au", Problem: "no answer in time"}, one, many,
	}})
	golden(t, "inspect_any.txt", b.String())
}

// TestInspectionWatched: a watch goes on until it is interrupted, in lines of JSON or as
// text.
func TestInspectionWatched(t *testing.T) {
	for _, form := range []string{"json", "text"} {
		s := newShell(t)
		read, write := io.Pipe()
		ctx, cancel := context.WithCancelCause(t.Context())
		p := &program{stdout: write, stderr: write, lookupEnv: func(string) (string, bool) { return "", false }}
		ended := make(chan int, 1)
		go func() {
			code := p.run(ctx, []string{"site", "inspect", "--watch", "--over", "1ms", "--site", "us", "--addr", s.addr, "--json=" + strconv.FormatBool(form == "json")})
			ended <- code
			_ = write.Close()
		}()
		looks := 0
		lines := bufio.NewScanner(read)
		for looks < 3 && lines.Scan() {
			switch {
			case form == "text" && strings.HasPrefix(lines.Text(), "Requests "):
				if want := "Requests         980 by partitions; 5 served alone (0.5 %)"; lines.Text() != want {
					t.Errorf("look %d tells %q", looks, lines.Text())
				}
				looks++
			case form == "json":
				var got inspection.Status
				if err := json.Unmarshal(lines.Bytes(), &got); err != nil || got.Sites[0].Served != 980 {
					t.Errorf("look %d tells %s: %v", looks, lines.Text(), err)
				}
				looks++
			}
		}
		cancel(errInterrupted)
		if _, err := io.Copy(io.Discard, read); err != nil {
			t.Error(err)
		}
		if code := <-ended; code != exitInterrupted || looks != 3 {
			t.Errorf("%s: exit status %d after %d looks", form, code, looks)
		}
	}
}

// lone is a site without an app manager.
type lone struct {
	samyav1.UnimplementedClusterServiceServer
	err error
}

func (l *lone) InspectSites(context.Context, *samyav1.InspectSitesRequest) (*samyav1.InspectSitesResponse, error) {
	if l.err != nil {
		return nil, l.err
	}
	return &samyav1.InspectSitesResponse{Sites: []*samyav1.SiteInspection{{
		Site: "au", Known: true, Up: durationpb.New(2 * time.Second), Served: 4, Partitions: []*samyav1.Partition{{Entities: 1, Operations: 4}},
	}}}, nil
}

func TestInspectASiteItself(t *testing.T) {
	serve := func(register func(*grpc.Server)) string {
		t.Helper()
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		srv := grpc.NewServer()
		register(srv)
		ended := make(chan error, 1)
		go func() { ended <- srv.Serve(l) }()
		t.Cleanup(func() {
			srv.Stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
		return l.Addr().String()
	}
	site := func(err error) string {
		return serve(func(s *grpc.Server) { samyav1.RegisterClusterServiceServer(s, &lone{err: err}) })
	}
	s := newShell(t)
	s.env = nil
	code, stdout, stderr := s.run("site inspect --site " + site(nil))
	if code != exitOK || stderr != "" || !strings.HasPrefix(stdout, "site au  1 partition over 2s\n") || !strings.HasSuffix(stdout, "\nNot every site answered.\n") {
		t.Errorf("exit status %d: %s%s", code, stdout, stderr)
	}
	// Errors come as sites send them.
	refusal := apierr.New(apierr.ShuttingDown, "the site is stopping").GRPCStatus().Err()
	older := serve(func(*grpc.Server) {})
	for _, c := range []struct {
		addr string
		code int
		want string
	}{
		{site(refusal), exitUnreachable, "SHUTTING_DOWN: the site is stopping"},
		{older, exitFailed, older + " does not tell of partitions"},
		{site(errors.New("broken")), exitUnreachable, "no site answers at "},
	} {
		if code, stdout, stderr := s.run("site inspect --site " + c.addr); code != c.code || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("exit status %d, want %d: %s%s does not say %q", code, c.code, stdout, stderr, c.want)
		}
	}
	if asked := s.manager.Requests(); len(slices.Compact(asked)) > 0 {
		t.Errorf("the app manager was asked: %v", asked)
	}
}

// TestSiteFailed: what a site refuses is told once.
func TestSiteFailed(t *testing.T) {
	err := siteFailed("127.0.0.1:1", "does not", apierr.Invalid("site", "no other nodes").GRPCStatus().Err())
	if got := err.Error(); got != "INVALID_FIELD: site: no other nodes" {
		t.Error(got)
	}
}
