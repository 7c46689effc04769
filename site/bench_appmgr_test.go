package site_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"testing"

	"github.com/samya-db/samya/site/sitetest"
)

// BenchmarkAppManager measures durable acquires through an app manager to a
// site, each with an id of its own, in alternated rounds with a control: the
// same calls to a bare server of the same kind that answers at once, with a
// body of the same size. All are processes of their own. It reports medians,
// their ratio, and the processor time and the allocations of each process per call.
func BenchmarkAppManager(b *testing.B) {
	b.Run("http", func(b *testing.B) {
		s, m := startManaged(b)
		control := startEcho(b, "http")
		compare(b, control, []*process{s.process, m.process}, httpAcquire(b, control.addr), httpAcquire(b, m.addr))
	})
	b.Run("grpc", func(b *testing.B) {
		s, m := startManaged(b)
		control := startEcho(b, "grpc")
		compare(b, control, []*process{s.process, m.process}, grpcAcquire(dial(b, control.addr)), grpcAcquire(dial(b, m.grpc)))
	})
}

// managerProcess is an app manager; its address is the address of its HTTP API.
type managerProcess struct {
	*process
	grpc string
}

// startManaged starts a site and an app manager that has found it.
func startManaged(b *testing.B) (siteProcess, managerProcess) {
	b.Helper()
	binary := buildSamya(b)
	s := startSite(b, binary)
	m := managerProcess{grpc: sitetest.FreePort(b)}
	addr := sitetest.FreePort(b)
	m.process = startProcess(b, "appmgr", exec.CommandContext(b.Context(), binary.binary, "appmgr", "--name", "am", "--region", "us",
		"--log-level", "error", "--http", addr, "--grpc", m.grpc, "--gossip", sitetest.FreePort(b),
		"--join", s.gossip, "--preset", "local", "--repeat-time", "2s"), addr)
	m.http = addr
	acquire := grpcAcquire(dial(b, m.grpc))
	sitetest.Eventually(b, "an acquire through the app manager", func() error { return acquire("first") })
	return s, m
}

// httpAcquire acquires over HTTP, each caller on its own kept connection.
func httpAcquire(b *testing.B, addr string) func(string) error {
	b.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: callers, DisableCompression: true}
	b.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	url := "http://" + addr + "/v1/entities/acme/vm:acquire"
	return func(id string) (err error) {
		body := fmt.Appendf(nil, `{"tokens":1,"request_id":%q}`, id)
		r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(r)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, resp.Body.Close()) }()
		if answer, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d: %.200s: %w", resp.StatusCode, answer, err)
		}
		return nil
	}
}

// echoHTTP answers like an app manager, at once.
func echoHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := io.ReadAll(r.Body); err != nil {
		return
	}
	const answer = `{"entity":"acme/vm","tokens":1,"request_id":"1234567","site":"us","left":1125899906842000}` + "\n"
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(answer)))
	h.Set("Cache-Control", "no-store")
	_, _ = io.WriteString(w, answer)
}
